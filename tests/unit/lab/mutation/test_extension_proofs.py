"""Reasons for faults of extensions, and the judges beside packets that need no kernel."""

from __future__ import annotations

import pytest

from tests.lab.mutation.extension_proofs import NEUTRAL, OUT_OF_REACH, reason_of
from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.instructions import planted_apart, shown_by_bucket
from tests.lab.mutation.neutral import asked_before, asks_again, ends_alike
from translate.ir import Family
from translate.read import read_ruleset

TABLE = """table ip nfparity {
	chain filter_FORWARD {
		type filter hook forward priority 0; policy accept;
		tcp dport 80 jump filter_FORWARD_2 comment "line 1"
	}
	chain filter_FORWARD_2 {
		ip ttl 5 return comment "line 1"
		drop comment "line 1"
	}
}
"""


def fault(operator: str, block: str, before: str, after: str | None) -> Fault:
    return Fault(operator=operator, place=Place(block, 0, before), after=after)


def limit(rate: str) -> Fault:
    return fault("rate", "limit_1", "\t\trate 3/hour burst 5 packets", f"\t\trate {rate} packets")


@pytest.mark.parametrize(
    ("table", "alike"),
    [
        (TABLE, True),
        (TABLE.replace("policy accept", "policy drop"), False),
        (TABLE.replace('2 comment "line 1"\n\t}', '2 comment "line 1"\n\t\tip ttl 6 drop\n\t}'), False),
    ],
)
def test_a_return_is_an_accept_where_nothing_follows(table: str, alike: bool) -> None:
    line = '\t\tip ttl 5 return comment "line 1"'
    accepted = fault("verdict", "filter_FORWARD_2", line, line.replace("return", "accept"))
    assert ends_alike(table, accepted) is alike
    assert not ends_alike(table, fault("lost-line", "filter_FORWARD_2", line, None))


@pytest.mark.parametrize(
    ("after", "shown"),
    [("4/hour burst 5", True), ("3/day burst 5", True), ("3/hour burst 6", True), ("3/hour burst 5", False)],
)
def test_a_bucket_is_compared_with_that_of_the_rule(after: str, shown: bool) -> None:
    text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m limit -j DROP\nCOMMIT\n"
    rules = tuple(read_ruleset(text.encode(), name="rules", family=Family.IP).rules())
    assert (shown_by_bucket(rules, limit(after)) is not None) is shown
    assert shown_by_bucket((), limit(after)) is None


def test_a_fault_is_planted_where_chains_have_other_names() -> None:
    text = TABLE.replace("filter_FORWARD_2", "filter__1_2")
    line = '\t\ttcp dport 80 jump filter_FORWARD_2 comment "line 1"'
    planted = planted_apart(text, fault("port", "filter_FORWARD", line, line.replace("80", "81")))
    assert planted == text.replace("80", "81")
    assert planted_apart(text, fault("lost-line", "filter_FORWARD", line.replace("80", "9"), None)) is None


def test_a_reason_is_for_its_extension_and_faults() -> None:
    line = "ct reply bytes 5 drop"
    changed = fault("number", "mangle_INPUT", line, "ct reply bytes 6 drop")
    assert reason_of(NEUTRAL, "-m connbytes", changed) is not None
    assert reason_of(NEUTRAL, "-m conntrack", changed) is None
    assert reason_of(NEUTRAL, "-m connbytes", fault("inverted-test", "mangle_INPUT", line, "drop")) is None
    assert reason_of(OUT_OF_REACH, "-m connbytes", changed) is None


CALLED = """table ip nfparity {
	chain filter_FORWARD {
		type filter hook forward priority 0; policy accept;
		meta l4proto tcp jump filter_FORWARD_2 comment "line 1"
	}
	chain filter_FORWARD_2 {
		comment "part of filter FORWARD, line 1"
		meta l4proto tcp add @set_pairs { ip saddr } comment "line 1"
		meta l4proto tcp drop comment "line 1"
	}
}
"""
CALL = '\t\tmeta l4proto tcp jump filter_FORWARD_2 comment "line 1"'
RULE = '\t\tmeta l4proto tcp drop comment "line 1"'


def without_test(text: str, block: str, line: str) -> Fault:
    lines = text.split("\n")
    place = Place(block, lines.index(line) if line in lines else 0, line)
    return Fault(operator="lost-test", place=place, after=line.replace("meta l4proto tcp ", ""))


@pytest.mark.parametrize(
    ("text", "known"),
    [(CALLED, True), (CALLED.replace("meta l4proto tcp drop comment", "ip ttl 5 drop comment"), False)],
)
def test_a_call_needs_no_test_that_each_called_rule_has(text: str, known: bool) -> None:
    assert asks_again(text, without_test(text, "filter_FORWARD", CALL)) is known


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (CALLED, True),
        (CALLED.replace("meta l4proto tcp jump", "jump"), False),
        (CALLED.replace(f"{CALL}\n", f"{CALL}\n\t\tmeta l4proto udp jump filter_FORWARD_2\n"), False),
    ],
)
def test_a_rule_needs_no_test_that_each_call_of_its_chain_has(text: str, known: bool) -> None:
    assert asked_before(text, without_test(text, "filter_FORWARD_2", RULE)) is known


def test_a_rule_of_a_base_chain_needs_its_test() -> None:
    assert not asked_before(CALLED, without_test(CALLED, "filter_FORWARD", CALL))
    changed = fault("tcp-udp", "filter_FORWARD_2", RULE, RULE.replace("tcp", "udp"))
    assert not asked_before(CALLED, changed)


def test_a_reason_may_be_for_one_sample() -> None:
    lost = fault("lost-line", "mangle_FORWARD", 'meta mark set ct mark comment "line 73"', None)
    assert reason_of(NEUTRAL, "-j CONNMARK", lost, "-A marks -j CONNMARK --restore-mark") is not None
    assert reason_of(NEUTRAL, "-j CONNMARK", lost, "-A marks -j CONNMARK --restore-mark --mask 0x80") is None
