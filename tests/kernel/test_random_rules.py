"""Random small rulesets: every backend does with packets what the simulator says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Send
from backends.model.node import Node, node_from_json
from backends.model.outcome import FlowResult, Verdict
from backends.nftables.backend import NftablesBackend
from backends.simulator import Simulation
from backends.tc_ebpf import TcEbpfBackend
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from tests.lab.random.nodes import with_random_rules
from tests.lab.random.rules import random_rules
from translate.errors import InputError, UnsupportedError
from translate.ir import Family, Protocol, Rule, Ruleset, SaveMark, SetConnmark
from translate.read import read_ruleset

SEEDS = (60, *range(343, 350))  # 60: addresses of a range in a zone
FLOWS = 30
COMPILED = 2  # a tc program takes the compiler a second or two
ANSWERED_AT_ONCE = 4  # the kernel answers one source five times at once, and then every second (ip_error)
BY_ROUTING = ("icmp-net-unreachable", "icmp-host-unreachable", "icmp-admin-prohibited")
MOST_REFUSED = len(SEEDS) // 2
SIX = Path(__file__).parent.parent / "corpus" / "rulesets" / "six" / "node.json"


@dataclass
class Played:
    """Rulesets with their nodes and flows, and what the simulator allows of each."""

    jobs: list[tuple[int, Job, list[tuple[Flow, FlowResult]]]] = field(default_factory=list)

    def differences(self, backend: Backend, level: int, most: int = 100) -> tuple[list[str], int]:
        """Return how ``backend`` differs on the first ``most`` rulesets, and how many it refused."""
        found, refused = [], 0
        for seed, job, expected in self.jobs[:most]:
            try:
                with backend.open(replace(job, level=level)) as session:
                    seen = list(session.replay(flow for flow, _ in expected))
            except UnsupportedError:
                refused += 1
                continue
            for (flow, wanted), got in zip(expected, seen, strict=True):
                found += [f"ruleset {seed}, {flow.id}: {m}" for m in compare(flow, wanted, got)]
        return found, refused


@pytest.fixture(scope="module", params=Family)
def played(request: pytest.FixtureRequest, kind_node: Node) -> Played:
    family = request.param
    node = kind_node if family is Family.IP else node_from_json(SIX.read_text(), name="six")
    made = Played()
    for seed in SEEDS:
        text = random_rules(seed, family)
        ruleset = read_ruleset(text.encode(), name=f"random-{seed}", family=family)
        # Every other node has routing rules of its own.
        job = Job(rules=ruleset, node=node if seed % 2 else with_random_rules(node, family, seed))
        made.jobs.append((seed, job, list(_expected(job, seed))))
    return made


def _expected(job: Job, seed: int) -> Iterator[tuple[Flow, FlowResult]]:
    simulation, ruleset, node = Simulation(job), job.ruleset, job.node
    # What answers a broadcast address leaves the node and comes back to it: two ends of one packet.
    loud = {
        a.network.high
        for i in node.interfaces
        for a in i.addresses
        if a.family is Family.IP and a.prefix_length < 31
    }
    refused: Counter[int] = Counter()
    for flow in random_flows(ruleset, node, seed=seed, count=FLOWS):
        # Chance that each packet draws anew has too many ways for long flows.
        short = Flow(id=flow.id, steps=flow.steps[:3])
        if not any(_is_left_out(s, loud) for s in short.steps if isinstance(s, Send)):
            with suppress(InputError):  # too many ways even so
                cut, result = _unanswered(short, simulation, ruleset)
                more = refused + Counter(_refused_by_routing(cut, result))
                if max(more.values(), default=0) <= ANSWERED_AT_ONCE:
                    refused = more
                    yield cut, result


def _refused_by_routing(flow: Flow, result: FlowResult) -> Iterator[int]:
    """Yield the source of each packet to which routing answers that there is no route (``ip_error``)."""
    for branch in result.branches[:1]:
        for step, outcome in zip(flow.steps, branch.outcomes, strict=False):
            if outcome.reject_with in BY_ROUTING:
                yield step.packet.src if isinstance(step, Send) else flow.first.packet.src


def _is_left_out(sent: Send, loud: set[int]) -> bool:
    packet = sent.packet
    # The tc program drops replies to what left the node from ::1 (docs/limits.md).
    localhost = sent.entry is None and packet.family is Family.IP6 and packet.src == 1
    return packet.src in loud or localhost


def _unanswered(flow: Flow, simulation: Simulation, ruleset: Ruleset) -> tuple[Flow, FlowResult]:
    """Cut a flow behind what the stack itself answers, if rules could mark the connection for it.

    Nobody listens on the node, so that a UDP packet that is delivered there makes an ICMP error, which is
    RELATED and passes the rules; the simulator's node has somebody who listens.
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


def _able(backend: Backend) -> Backend:
    require(backend)
    return backend


@pytest.mark.parametrize("backend_name", ["iptables-legacy", "iptables-nft"])
def test_iptables_goes_as_simulated(played: Played, backend_name: str) -> None:
    assert played.differences(_able(IptablesBackend(backend_name)), 0) == ([], 0)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_nftables_goes_as_simulated(played: Played, level: int) -> None:
    found, refused = played.differences(_able(NftablesBackend()), level)
    assert found == []
    assert refused < MOST_REFUSED


def test_tc_ebpf_goes_as_simulated(played: Played) -> None:
    found, refused = played.differences(_able(TcEbpfBackend()), 1, COMPILED)
    assert found == []
    assert refused < COMPILED


@pytest.mark.parametrize("family", Family)
def test_the_same_seed_gives_the_same_rules(family: Family) -> None:
    assert random_rules(7, family) == random_rules(7, family)
    assert random_rules(7, family) != random_rules(8, family)


@pytest.mark.parametrize("family", Family)
def test_every_ruleset_can_be_read(family: Family) -> None:
    for seed in range(100):
        try:
            read_ruleset(random_rules(seed, family).encode(), name=f"random-{seed}", family=family)
        except InputError as e:
            pytest.fail(f"seed {seed}: {e}")
