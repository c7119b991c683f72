"""Reasons for faults of extensions, and the judges beside packets that need no kernel."""

from __future__ import annotations

import pytest

from tests.lab.mutation.extension_proofs import NEUTRAL, OUT_OF_REACH, reason_of
from tests.lab.mutation.fault import Fault, Place
from tests.lab.mutation.instructions import planted_apart, shown_by_bucket
from tests.lab.mutation.neutral import ends_alike
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
