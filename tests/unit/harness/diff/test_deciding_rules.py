from __future__ import annotations

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import Simulation, simulate
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.ruletext import place
from harness.diff.deciding_rules import deciding_rules, find_branch
from harness.diff.mismatch import Mismatch
from translate.ir import Rule

LINE = (
    b'{"id": "a", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 1,'
    b' "dport": 53, "then": [{"reply": {}}]}\n'
    b'{"id": "b", "in": "pod5", "src": "10.244.0.5", "dst": "10.244.0.3", "proto": "udp", "sport": 2,'
    b' "dport": 9}'
)


def at(step: int, branch: int) -> Mismatch:
    return Mismatch(step=step, field="dst", expected=1, observed=2, branch=branch)


def decided(job: Job, flow: Flow, mismatch: Mismatch) -> list[str]:
    return [one if isinstance(one, str) else place(one) for one in deciding_rules(job, flow, mismatch)]


def test_each_branch_has_its_own_deciding_rules(worker: Job) -> None:
    service, direct = read_flows(LINE, name="f", node=worker.node)
    result = simulate(worker, service)
    for index, branch in enumerate(result.branches):
        traced = find_branch(Simulation(worker), service, index)
        assert traced.steps[0].outcome == branch.outcomes[0]
        (rule,) = deciding_rules(worker, service, at(0, index))
        assert isinstance(rule, Rule)
        dnat = place(rule)
        assert dnat.startswith("kind:")
        assert "-j DNAT" in dnat
        assert dnat in decided(worker, service, at(1, index))
        accepted = "--ctstate RELATED,ESTABLISHED -j ACCEPT"
        assert any(accepted in one for one in decided(worker, service, at(1, index)))
    assert decided(worker, direct, at(0, 0)) == ["no rule: every chain that it passed accepted it"]
