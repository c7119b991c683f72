from __future__ import annotations

from backends.contract import Job
from backends.simulator import simulate
from harness.compare import Mismatch
from harness.corpus.jsonlines import read_flows
from harness.deciding import deciding_rules, find_branch

LINE = (
    b'{"id": "a", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 1,'
    b' "dport": 53, "then": [{"reply": {}}]}\n'
    b'{"id": "b", "in": "pod5", "src": "10.244.0.5", "dst": "10.244.0.3", "proto": "udp", "sport": 2,'
    b' "dport": 9}'
)


def at(step: int, branch: int) -> Mismatch:
    return Mismatch(step=step, field="dst", expected=1, observed=2, branch=branch)


def test_each_branch_has_its_own_deciding_rules(worker: Job) -> None:
    service, direct = read_flows(LINE, name="f", node=worker.node)
    result = simulate(worker, service)
    for index, branch in enumerate(result.branches):
        traced = find_branch(worker, service, index)
        assert traced.steps[0].outcome == branch.outcomes[0]
        (dnat,) = deciding_rules(worker, service, at(0, index))
        assert dnat.startswith("kind:")
        assert "-j DNAT" in dnat
        assert dnat in deciding_rules(worker, service, at(1, index))
        assert any(
            "--ctstate RELATED,ESTABLISHED -j ACCEPT" in r
            for r in deciding_rules(worker, service, at(1, index))
        )
    assert deciding_rules(worker, direct, at(0, 0)) == ("no rule: every chain that it passed let it go on",)
