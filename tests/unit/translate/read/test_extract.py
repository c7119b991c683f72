"""Listings and dumps are found on a page of prose, and kept apart where they contradict each other."""

# ruff: noqa: E501  # listings are wide

from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import Family, Hidden, Ruleset, TableName
from translate.read import read_pieces

_COLUMNS = "target     prot opt source               destination\n"
_ROW = "X  all  --  anywhere             anywhere\n"


def _pieces(text: str, **given) -> tuple[Ruleset, ...]:
    return read_pieces(text.encode(), name="page", **given)


def _shown(ruleset: Ruleset) -> dict[str, int]:
    return {c.name: len(c.rules) for c in ruleset.tables[0].chains if not c.is_hidden}


def test_the_command_names_the_table_and_the_family():
    page = (
        f"Look:\n$ ip6tables -t nat -L KUBE -n\nChain KUBE (1 references)\n{_COLUMNS}{_ROW}\nThat is all.\n"
    )
    (ruleset,) = _pieces(page)
    assert (ruleset.tables[0].name, ruleset.family) == (TableName.NAT, Family.IP6)
    assert _shown(ruleset) == {"KUBE": 1}


def test_prose_ends_a_listing():
    page = f"Chain A (1 references)\n{_COLUMNS}{_ROW}The rule above jumps.\n```\nChain B (1 references)\n{_ROW}...\n```\n"
    (ruleset,) = _pieces(page, table=TableName.NAT)
    assert _shown(ruleset) == {"A": 1, "B": 2}
    (left_out,) = ruleset.tables[0].chain("B").rules[1].unknown
    assert (left_out.reason, left_out.hides) == ("rules are left out here", Hidden.RULES)


def test_the_same_chain_twice_is_read_once():
    listing = f"Chain A (1 references)\n{_COLUMNS}{_ROW}\n"
    assert len(_pieces(f"{listing}\nagain:\n{listing}", table=TableName.NAT)) == 1


def test_contradicting_listings_are_two_pieces():
    one = f"Chain A (1 references)\n{_COLUMNS}{_ROW}"
    assert len(_pieces(f"{one}\nlater:\n{one}{_ROW}", table=TableName.NAT)) == 2


def test_listings_of_two_tables_are_two_pieces():
    one = f"Chain A (1 references)\n{_COLUMNS}{_ROW}\n"
    pieces = _pieces(f"# iptables -t nat -L A\n{one}# iptables -t raw -L A\n{one}")
    assert [piece.tables[0].name for piece in pieces] == [TableName.NAT, TableName.RAW]


def test_rules_without_a_header_are_of_an_unknown_chain():
    (ruleset,) = _pieces(f"as in\n\n{_ROW}\n", table=TableName.NAT)
    assert _shown(ruleset) == {"?3": 1}
    assert "line 3" in ruleset.unknown[0]


def test_a_dump_and_a_cut_dump():
    page = "text\n*nat\n:X - [0:0]\n-A X -j RETURN\nCOMMIT\nmore text\n*nat\n:Y - [0:0]\n"
    whole, cut = _pieces(page)
    assert (whole.unknown, list(whole.unknowns())) == ((), [])
    assert cut.tables[0].chain("Y").is_hidden
    assert cut.unknown == ("table nat is cut off behind line 8",)


def test_rules_without_a_dump():
    page = "the rules:\n\n-A KUBE -s 10.0.0.1/32 -j RETURN\n-A KUBE -j KUBE-SEP\n\nend\n"
    (ruleset,) = _pieces(page, table=TableName.NAT)
    assert len(ruleset.tables[0].chain("KUBE").rules) == 3
    assert ruleset.tables[0].chain("KUBE-SEP").is_hidden


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("", "no listing and no dump"),
        ("$ iptables -t nat -L <chain-name>\n- a list\n* another\n", "no listing and no dump"),
        ("*nat\n:X - [0:0]\n-A X -s nowhere -j RETURN\nCOMMIT\n", "is not an IPv4 address"),
        (f"Chain A (1 references)\n{_COLUMNS}X tcp -- anywhere anywhere tcp dpt:nosuch\n", 'unknown port "nosuch"'),
        (f"Chain PREROUTING (policy ACCEPT)\n{_COLUMNS}{_ROW}", "name it with --table"),
    ],
)  # fmt: skip
def test_bad_pages(page, message):
    with pytest.raises(ParseError) as caught:
        _pieces(page)
    assert any(message in d.render() for d in caught.value.diagnostics)
