"""The tests of a rule as a table."""

from __future__ import annotations

from tests.lab.mutation.match_table import MatchTable

PORTS = MatchTable.of(["l4", "port"], [("tcp", "80"), ("udp", "53")])


def test_columns_are_sorted() -> None:
    assert MatchTable.of(["port", "l4"], [("80", "tcp"), ("53", "udp")]) == PORTS


def test_a_test_that_is_implied_adds_nothing() -> None:
    tcp = MatchTable.of(["l4"], [("tcp",)])
    assert PORTS.joined(tcp) == MatchTable.of(["l4", "port"], [("tcp", "80")])
    assert PORTS.joined(tcp).joined(tcp) == PORTS.joined(tcp)


def test_other_columns_multiply_and_contradictions_leave_nothing() -> None:
    address = MatchTable.of(["dst"], [("10.0.0.1",), ("10.0.0.2",)])
    assert len(PORTS.joined(address).rows) == 4
    assert PORTS.joined(MatchTable.of(["l4"], [("sctp",)])).is_empty


def test_of_prefixes_and_ranges_nothing_is_concluded() -> None:
    wide, narrow = MatchTable.of(["src"], [("10.0.0.0/8",)]), MatchTable.of(["src"], [("11.0.0.1",)])
    assert not wide.joined(narrow).is_empty
    assert wide.joined(wide) == wide


def test_what_another_one_takes_as_a_whole_is_left_out() -> None:
    assert PORTS.beyond(MatchTable.of(["l4"], [("udp",)])) == MatchTable.of(["l4", "port"], [("tcp", "80")])
    assert PORTS.beyond(MatchTable.of(["dst"], [("10.0.0.1",)])) == PORTS
    assert PORTS.beyond(MatchTable()).is_empty
