"""Random rulesets with flows, the outcomes that the simulator allows, and the differences of a backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Send
from backends.model.node import Node, node_from_json
from backends.model.outcome import FlowResult, Verdict
from backends.simulator import Simulation
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare
from tests.lab.random.nodes import with_random_settings
from tests.lab.random.rules import random_rules
from tests.lab.random.untracked import untracked
from translate.errors import InputError, UnsupportedError
from translate.ir import Family, Protocol, Rule, Ruleset, SaveMark, SetConnmark
from translate.read import read_ruleset

__all__ = ["Played", "expected_flows", "goes_another_way", "node_of", "random_job"]

FLOWS: Final = 30
ANSWERED_AT_ONCE: Final = 4  # ip_error answers a source five times at once, then once a second
BY_ROUTING: Final = ("icmp-net-unreachable", "icmp-host-unreachable", "icmp-admin-prohibited")
_GROUPS: Final = 0xFF  # the first byte of an IPv6 group
_RULESETS: Final = Path(__file__).parents[2] / "corpus/rulesets"
_WITHOUT_FRAGMENTS: Final = ("iptables-nft", "tc-ebpf")
"""Backends that treat fragments in another way (docs/limits.md)."""
_DROPPING_TRUNCATED: Final = "iptables-legacy"
"""The only backend that drops a packet at a rule that reads its truncated header (docs/limits.md)."""
_NEVER_TRACKED: Final = 5
_TRACKED_BY_AN_IDLE_RULE: Final = 14
"""The remainders of seeds whose rules that need conntrack are left out."""
_NODES: Final = {Family.IP: "kind-node/worker.json", Family.IP6: "six/node.json"}


def node_of(family: Family) -> Node:
    """Return the node on which random rules of a family are played."""
    name = _NODES[family]
    return node_from_json((_RULESETS / name).read_text(), name=name)


def random_job(seed: int, family: Family, node: Node) -> Job:
    """Return the random ruleset of a seed on a node, with settings of its own.

    Of 16 rulesets, one has no rule that needs conntrack, and one only a rule that no packet reaches.
    """
    text = random_rules(seed, family)
    if seed % 16 in (_NEVER_TRACKED, _TRACKED_BY_AN_IDLE_RULE):
        lines = untracked(text, family)
        if seed % 16 == _TRACKED_BY_AN_IDLE_RULE:
            lines[1:1] = [":idle - [0:0]", "-A idle -m conntrack --ctstate NEW -j RETURN"]
        text = "\n".join(lines)
    ruleset = read_ruleset(text.encode(), name=f"random-{seed}", family=family)
    return Job(rules=ruleset, node=with_random_settings(node, seed))


@dataclass
class Played:
    """Rulesets with their nodes and flows, and the outcomes that the simulator allows for each flow."""

    jobs: list[tuple[int, Job, list[tuple[Flow, FlowResult]]]] = field(default_factory=list)

    def differences(self, backend: Backend, level: int, most: int = 100) -> tuple[list[str], int]:
        """Return how ``backend`` differs on the first ``most`` rulesets, and the number of refusals."""
        differences, refused = [], 0
        for seed, job, expected in self.jobs[:most]:
            try:
                with backend.open(replace(job, level=level)) as session:
                    results = list(session.replay(flow for flow, _ in expected))
            except UnsupportedError:
                refused += 1
                continue
            for (flow, wanted), result in zip(expected, results, strict=True):
                if goes_another_way(flow, backend.name):
                    continue
                differences += [
                    f"ruleset {seed}, {flow.id}: {m}"
                    for m in compare(flow, wanted, result)
                    if not (backend.name == "nftables" and m.field == "mss" and _loops(flow, wanted))
                ]
        return differences, refused


def expected_flows(job: Job, seed: int, count: int = FLOWS) -> Iterator[tuple[Flow, FlowResult]]:
    """Yield random flows that have one outcome on a kernel, with the outcomes that the simulator allows."""
    simulation, ruleset, node = Simulation(job), job.ruleset, job.node
    # An answer from a broadcast address leaves the node and also comes back to it: one packet is seen twice.
    loud = {
        a.network.high
        for i in node.interfaces
        for a in i.addresses
        if a.family is Family.IP and a.prefix_length < 31
    }
    refused: Counter[int] = Counter()
    for flow in random_flows(ruleset, node, seed=seed, count=count, truncating=True):
        # Long flows have too many branches if each packet makes random choices.
        short = Flow(id=flow.id, steps=flow.steps[:3])
        if not any(_is_left_out(s, loud, node) for s in short.steps if isinstance(s, Send)):
            with suppress(InputError):  # still too many branches
                cut, result = _unanswered(short, simulation, ruleset)
                more = refused + _refused_by_routing(cut, result)
                beyond = _is_from_group(result) or _is_answered_by_socket(cut, result, node)
                if max(more.values(), default=0) <= ANSWERED_AT_ONCE and not beyond:
                    refused = more
                    yield cut, result


def _has_fragment(flow: Flow) -> bool:
    return any(isinstance(step, Send) and step.packet.fragment is not None for step in flow.steps)


def _loops(flow: Flow, wanted: FlowResult) -> bool:
    """Return whether a packet of the node crosses ``lo``, where nftables leaves its MSS (docs/limits.md)."""
    made_here = isinstance(flow.steps[0], Send) and flow.steps[0].entry is None
    return made_here and any(b.outcomes[0].verdict is Verdict.LOCAL for b in wanted.branches)


def goes_another_way(flow: Flow, backend: str) -> bool:
    """Return whether a backend is known to treat a flow in another way than iptables-legacy."""
    fragments = backend in _WITHOUT_FRAGMENTS and _has_fragment(flow)
    return fragments or (backend != _DROPPING_TRUNCATED and _is_truncated(flow))


def _is_truncated(flow: Flow) -> bool:
    return any(isinstance(step, Send) and step.packet.truncated for step in flow.steps)


def _refused_by_routing(flow: Flow, result: FlowResult) -> Counter[int]:
    """Return an upper bound, by source, of the packets that routing answers with an error (``ip_error``).

    The source of a later packet is one end of the connection: the first packet's source, or where it went.
    """
    most: Counter[int] = Counter()
    for branch in result.branches:
        sources: Counter[int] = Counter()
        for step, outcome in zip(flow.steps, branch.outcomes, strict=False):
            if outcome.reject_with not in BY_ROUTING:
                continue
            if isinstance(step, Send):
                sources[step.packet.src] += 1
            else:
                sources[flow.first.packet.src] += 1
                if (end := branch.outcomes[0].dst) is not None:
                    sources[end] += 1
        most |= sources
    return most


def _is_from_group(result: FlowResult) -> bool:
    """Return whether the node receives from an IPv6 group, which the tc program drops (docs/limits.md)."""
    return any(
        o.verdict is Verdict.LOCAL and (o.src or 0) >> 120 == _GROUPS
        for b in result.branches
        for o in b.outcomes
    )


def _is_answered_by_socket(flow: Flow, result: FlowResult, node: Node) -> bool:
    """Return whether the node answers by a raw socket, beyond suppress_prefixlength (docs/limits.md)."""
    return (
        flow.first.packet.family is Family.IP6
        and any(rule.suppress is not None for rule in node.rules_of(Family.IP6))
        and any(o.verdict is Verdict.LOCAL for b in result.branches for o in b.outcomes[:-1])
    )


def _is_left_out(sent: Send, loud: set[int], node: Node) -> bool:
    packet = sent.packet
    # The raw socket that sends the node's own packets defeats suppress_prefixlength (docs/limits.md).
    if sent.entry is None and any(rule.suppress is not None for rule in node.rules_of(Family.IP6)):
        return True
    # The tc program drops replies to packets that left the node from ::1 (docs/limits.md).
    localhost = sent.entry is None and packet.family is Family.IP6 and packet.src == 1
    return packet.src in loud or localhost


def _unanswered(flow: Flow, simulation: Simulation, ruleset: Ruleset) -> tuple[Flow, FlowResult]:
    """Cut a flow after the packet that the stack itself answers, if rules could mark its connection.

    No program listens on the node, so a UDP packet that is delivered there causes an ICMP error, which is
    RELATED and passes the rules. On the simulator's node a program listens.
    """
    result = simulation.simulate(flow)
    local = any(b.outcomes[0].verdict is Verdict.LOCAL for b in result.branches)
    writes = any(isinstance(a, SetConnmark | SaveMark) for r in _rules(ruleset) for a in r.actions)
    if not (local and writes and flow.first.packet.proto != Protocol.TCP):
        return flow, result
    cut = replace(flow, steps=flow.steps[:1])
    return cut, simulation.simulate(cut)


def _rules(ruleset: Ruleset) -> Iterator[Rule]:
    return (rule for table in ruleset.tables for chain in table.chains for rule in chain.rules)
