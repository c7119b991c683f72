"""Wrong rules for packets without a route are found, although the kernel answers only some of the packets.

The case ``no-default-route`` of ``tests/corpus/cases`` shows that right rules have no difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.simulator import simulate
from harness.corpus.cases import read_case
from harness.diff.backends import backend
from harness.diff.replay import ReplayOptions, replay
from tests.kernel.helpers.availability import require
from translate.read import read_ruleset

CASE = read_case(Path(__file__).parents[1] / "corpus/cases/no-default-route")
RULES = CASE.rules_path.read_text()
BEFORE = "-A PREROUTING -p tcp -m tcp --dport 82 -j DROP\n"
ANSWERS = "-A OUTPUT -d 10.244.0.66/32 -p icmp -m icmp --icmp-type 3 -j DROP\n"


def differing(name: str, loaded: str) -> set[str]:
    """Return the flows that differ on a backend with other rules than those of the case."""
    subject = backend(name)
    require(subject)
    expected = [simulate(Job(rules=CASE.ruleset, node=CASE.node), flow) for flow in CASE.flows]
    job = Job(rules=read_ruleset(loaded.encode(), name="rules"), node=CASE.node)
    (replayed,) = replay([subject], job, CASE.flows, ReplayOptions(expected=expected))
    pairs = zip(CASE.flows, replayed.differing, strict=True)
    return {flow.id for flow, paths in pairs if paths}


@pytest.mark.parametrize("name", ["iptables-legacy", "nftables", "tc-ebpf"])
def test_a_drop_that_is_missing(name: str) -> None:
    assert RULES.count(BEFORE) == 1
    assert differing(name, RULES.replace(BEFORE, "")) == {
        "answered-dropped-before",
        "unanswered-dropped-before",
    }


@pytest.mark.parametrize("name", ["iptables-legacy", "nftables", "tc-ebpf"])
def test_packets_that_are_dropped_before_their_errors(name: str) -> None:
    found = differing(name, RULES.replace(BEFORE, "-A PREROUTING -p udp -j DROP\n"))
    assert {f"answered-{n}" for n in (2, 4, 6, 8)} | {f"unanswered-{n}" for n in (2, 4, 6, 8)} < found


@pytest.mark.parametrize("name", ["iptables-legacy", "nftables", "tc-ebpf"])
def test_errors_that_are_not_dropped_and_others_that_are(name: str) -> None:
    """The first five errors for each source differ; the kernel may leave out later ones."""
    assert RULES.count(ANSWERS) == 1
    first = set(map(str, range(1, 6)))
    found = differing(name, RULES.replace(ANSWERS, ANSWERS.replace("66", "5")))
    assert {f"{who}-{n}" for who in ("answered", "unanswered") for n in first} <= found
