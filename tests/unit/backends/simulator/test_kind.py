"""The purpose of a kind node's rules, on that node."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.model.packet import PortClass
from backends.simulator import RuleVisited, Simulation, SimulatorBackend
from translate.read import read_ruleset

KIND = Path(__file__).parents[3] / "corpus" / "rulesets" / "kind-node"


@pytest.fixture(scope="module")
def job() -> Job:
    rules = read_ruleset((KIND / "rules.iptables-save").read_bytes(), name="kind")
    return Job(rules=rules, node=node_from_json((KIND / "worker.json").read_text(), name="worker"))


def simulate(job: Job, *steps):
    return Simulation(job).simulate(Flow(id="kind", steps=steps)).branches


def test_hairpin_half_of_the_time(job, lab) -> None:
    branches = simulate(job, lab.udp("10.244.0.3", "10.96.0.10", "dns3"), Reply())
    by_out = {b.outcomes[0].out: b for b in branches}
    assert {b.probability for b in branches} == {Fraction(1, 2)}
    itself = by_out["dns3"].outcomes
    assert (itself[0].src, itself[0].sport) == (lab.ip("10.244.0.1"), PortClass(1024, 65535))
    assert (itself[1].src, itself[1].dst) == (lab.ip("10.96.0.10"), lab.ip("10.244.0.3"))
    assert by_out["dns4"].outcomes[0].src == lab.ip("10.244.0.3")


def test_off_cluster_clients_are_masqueraded_and_the_mark_is_gone(job, lab) -> None:
    for branch in simulate(job, lab.udp("172.18.0.9", "10.96.0.10", "eth0")):
        (out,) = branch.outcomes
        assert (out.src, out.mark) == (lab.ip("10.244.0.1"), 0)


@pytest.mark.parametrize(
    ("mark", "verdict"), [(0x8000, Verdict.DROP), (0x8001, Verdict.DROP), (0x1, Verdict.FORWARD)]
)
def test_the_kubelet_firewall_drops_marked_packets(job, lab, mark: int, verdict: Verdict) -> None:
    (branch,) = simulate(job, lab.udp("172.18.0.2", "172.18.0.9", None, mark=mark))
    assert branch.outcomes[0].verdict is verdict


def test_localnet_is_guarded_from_outside(job, lab) -> None:
    (branch,) = simulate(job, lab.tcp("172.18.0.9", "127.0.0.1", "eth0"))
    assert branch.outcomes[0].verdict is Verdict.DROP


def test_docker_dns_is_let_through_the_guard_because_it_was_dnatted(job, lab) -> None:
    (branch,) = simulate(job, lab.udp("172.18.0.9", "172.18.0.1", "eth0"), Reply())
    there, back = branch.outcomes
    assert (there.verdict, there.dst, there.dport) == (Verdict.LOCAL, lab.ip("127.0.0.11"), 58922)
    assert (back.out, back.src, back.sport) == ("eth0", lab.ip("172.18.0.1"), 53)


def test_a_trace_shows_why_a_hairpin_needs_the_mark(job, lab) -> None:
    flow = Flow(id="why", steps=(lab.udp("10.244.0.3", "10.96.0.10", "dns3"),))
    marked = {}
    for branch in Simulation(job).trace(flow):
        (step,) = branch.steps
        assert step.outcome is not None
        rules = [e for e in step.events if isinstance(e, RuleVisited)]
        marked[step.outcome.out] = [r for r in rules if r.chain == "KUBE-MARK-MASQ"]
        assert all(r.rule.origin.line for r in rules)
    assert [r.mark for r in marked["dns3"]] == [0x4000]
    assert marked["dns4"] == []


def test_the_backend_replays_flows_in_order(job, lab) -> None:
    flows = [Flow(id=str(n), steps=(lab.udp("10.244.0.5", "10.96.0.10", "pod5"),)) for n in range(3)]
    backend = SimulatorBackend()
    assert backend.probe().ok
    with backend.open(job) as session:
        assert [r.flow_id for r in session.replay(flows)] == ["0", "1", "2"]
