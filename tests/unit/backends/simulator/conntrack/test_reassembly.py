"""Rules that make the kernel reassemble; tests/kernel/test_fragment_cases.py asks the kernel the same."""

from __future__ import annotations

import pytest

from backends.model.outcome import Verdict
from backends.model.packet import Fragment
from backends.simulator.conntrack.reassembly import reassembles

LAST = Fragment(185, id=7)


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        ("filter: -A FORWARD -p udp -m udp --dport 5 -j DROP", False),
        ("raw: -A PREROUTING -j CT --notrack", False),
        ("nat: -P OUTPUT ACCEPT", False),
        ("filter: -A FORWARD -m conntrack --ctstate NEW", True),
        ("mangle: -A PREROUTING -m socket", True),
        ("mangle: -A PREROUTING -m connmark ! --mark 1", True),
        ("nat: -A POSTROUTING -j MASQUERADE", True),
        ("filter: -N UNUSED\nfilter: -A UNUSED -m connlabel --label 5", True),
    ],
)
def test_rules_by_whether_they_need_whole_packets(lab, rule: str, needed: bool) -> None:
    assert reassembles(lab.job(rule).ruleset) is needed


def test_an_unmodelled_rule_may_need_whole_packets(lab) -> None:
    hidden = "filter: -A FORWARD -m string --algo bm --string x -j DROP"
    assert reassembles(lab.job(hidden).ruleset) is None
    assert reassembles(lab.job(f"{hidden}\nnat: -A POSTROUTING -j MASQUERADE").ruleset) is True
    (outcome,) = lab.run(hidden, lab.udp("10.1.0.5", "10.2.0.5", sport=None, dport=None, fragment=LAST))
    assert outcome.verdict is Verdict.UNKNOWN
    assert "may make the kernel reassemble" in outcome.hidden
