from __future__ import annotations

import io
from dataclasses import replace

from backends.model.contract import Job
from harness.corpus.coverage import count_in_simulator, coverage
from harness.corpus.formats.jsonlines import read_flows
from harness.report.rules import coverage_to_json, print_coverage

FLOW = (
    b'{"id": "a", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10",'
    b' "proto": "udp", "sport": 1, "dport": 53}'
)


def test_what_one_flow_hits(worker: Job) -> None:
    flows = read_flows(FLOW, name="f", node=worker.node)
    counts = count_in_simulator(worker, flows)
    report = coverage(worker.ruleset, [counts], counted_by="simulator", flows=1)
    by_line = {r.rule.origin.line: r for r in report.rules}
    assert len(report.rules) == 64
    assert by_line[98].matched == 2, "on both branches"
    assert (by_line[84].matched, by_line[84].passed) == (0, 1)
    assert by_line[99].matched == 0
    assert by_line[99] in report.missed
    assert [r.rule.origin.line for r in report.unreachable] == [79]
    assert by_line[27].idle == "chain KUBE-PROXY-FIREWALL is empty"
    twice = coverage(worker.ruleset, [counts, counts], counted_by="simulator", flows=2)
    assert next(r for r in twice.rules if r.rule.origin.line == 98).matched == 4


def test_printing(worker: Job) -> None:
    report = coverage(worker.ruleset, [{}], counted_by="nobody", flows=0)
    out = io.StringIO()
    print_coverage(report, out)
    text = out.getvalue()
    assert "64 rules; 0 flows hit 0, miss 63; 1 cannot be reached" in text
    assert "no rule jumps to chain KUBE-MARK-DROP" in text
    data = coverage_to_json(report)
    assert (data["total"], data["missed"], data["unreachable"]) == (64, 63, 1)


def test_a_proof_that_packets_disprove_is_shouted(worker: Job) -> None:
    report = coverage(worker.ruleset, [{("nat", "KUBE-MARK-DROP", 0): (3, None)}], counted_by="x", flows=1)
    out = io.StringIO()
    print_coverage(replace(report), out)
    assert "proof and packets disagree" in out.getvalue()
