"""Differences of a translation with a planted fault are reduced to a few rules and packets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import pytest

from backends.model.contract import Availability, Job
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import KernelSession, open_session
from backends.testbed.command import find_tool
from harness.corpus.cases import Case, read_case, read_cases
from harness.diff.backends import REFERENCE, backend
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from harness.diff.result import Difference
from harness.shrink.proposals import Shown, rule_ids
from harness.shrink.shrink import Shrinker, write_shrunk
from nfparity.cli import main
from translate.condense import emit_nft, lower

CORPUS = Path(__file__).parent.parent / "corpus"
WORKER = CORPUS / "rulesets/kind-node/worker.json"

pytestmark = pytest.mark.kernel


class Faulty:
    """nftables with a fault in the text that it loads."""

    name = "nftables"

    def __init__(self, change: Callable[[str], str]) -> None:
        self.change = change

    def probe(self) -> Availability:
        return NftablesBackend().probe()

    def open(self, job: Job) -> AbstractContextManager[KernelSession]:
        output = emit_nft(lower(job.rules, level=job.level))
        loader = NftablesLoader(self.change(output.text), job.rules.family, flush=output.flush)
        return open_session(job.node, loader, limits=output.notes)


def _next_port(match: re.Match[str]) -> str:
    return f"dnat to {match[1]}:{int(match[2]) + 1}"


FAULTS: dict[str, tuple[str, str | Callable[[re.Match[str]], str], int]] = {
    "DNAT to the next port": (r"dnat to ([\d.]+):(\d+)", _next_port, 1),
    "masquerade is left out": (r"\bmasquerade\b( fully-random)?", "accept", 1),
    "a mark of another bit": (r"\| 0x4000", "| 0x2000", 3),
    "a source is inverted": (r"ip saddr != ", "ip saddr ", 3),
    "TCP is UDP": (r"tcp dport 53", "udp dport 53", 3),
    "not local is local": (r"fib daddr type != local", "fib daddr type local", 1),
    "DNAT to another address": (r"dnat to 10.244.0.3", "dnat to 10.244.0.9", 1),
    "a drop is an accept": (r"(?<!policy )\bdrop\b", "accept", 1),
    "a return is an accept": (r"\breturn\b", "accept", 3),
    "SNAT to another address": (r"snat to 172.18.0.1", "snat to 172.18.0.9", 1),
}
"""A pattern of the text, its replacement, and the most rules that are left."""


@cache
def kind_cases() -> tuple[Case, ...]:
    return tuple(c for c in read_cases(CORPUS / "cases") if c.node_path.resolve() == WORKER.resolve())


def first_difference(faulty: Faulty) -> tuple[Difference, Batch]:
    case = next(case for case in kind_cases() if case.rules_path.parent.name == "kind-node")
    flows = tuple(f for c in kind_cases() if c.rules_path.samefile(case.rules_path) for f in c.flows)
    batch = Batch(rules_path="kind", rules=case.ruleset, node=case.node, flows=flows, corpus=None)
    report = run_parity(
        Plan(batches=(batch,), level=0),
        (faulty,),
        reference=backend(REFERENCE),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    return report.differences[0], batch


@pytest.mark.parametrize(
    "fault",
    [pytest.param(name, marks=() if at == 1 else pytest.mark.slow) for at, name in enumerate(FAULTS)],
)
def test_a_planted_fault_is_reduced(fault: str, tmp_path: Path) -> None:
    pattern, replacement, most = FAULTS[fault]
    faulty = Faulty(lambda text: re.sub(pattern, replacement, text))
    if not faulty.probe().ok:
        pytest.skip(faulty.probe().reason)
    difference, batch = first_difference(faulty)
    shrinker = Shrinker(
        difference=difference,
        backend=faulty,
        reference=backend(REFERENCE),
        node=batch.node,
        level=0,
        tell=lambda *_: None,
    )
    flow = next(f for f in batch.flows if f.id == difference.flow_id)
    shown = shrinker.shrink(Shown(batch.ruleset, flow))
    assert len(rule_ids(shown.ruleset)) <= most
    assert len(shown.flow.steps) <= 2
    write_shrunk(tmp_path / "case", shown, shrinker)
    assert read_case(tmp_path / "case").flows == (shown.flow,)


def test_the_command_writes_a_case_with_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """TCPMSS adds an option to a SYN without one, which nft does not do."""
    save = (CORPUS / "rulesets/kind-node/rules.iptables-save").read_text()
    clamp = "-A FORWARD -s 10.244.0.0/16 -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --set-mss 1200\n"
    before, mangle, after = save.partition("*mangle\n")
    rules, flows, case = tmp_path / "rules", tmp_path / "flows", tmp_path / "case"
    rules.write_text(before + mangle + after.replace("COMMIT\n", f"{clamp}COMMIT\n", 1))
    flow = {"id": "x", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "tcp"}
    flows.write_text(json.dumps({**flow, "sport": 40000, "dport": 53, "then": [{"reply": {}}]}) + "\n")
    words = ["diff", str(rules), "--node", str(WORKER), "--corpus", str(flows), "--backends", "nftables"]
    assert main([*words, "--shrink", str(case)]) == 1
    (table,) = read_case(case).ruleset.tables
    assert len(list(table.rules())) == 1
    assert "| expected | 536 |" in (case / "report.md").read_text()
    capsys.readouterr()
    assert main([*words, "--shrink", str(case)]) == 2
    assert "--shrink makes a new folder" in capsys.readouterr().err
    assert main(["diff", "--corpus", str(case), "--backends", "nftables"]) == 1


@pytest.mark.slow
def test_the_faults_of_another_translator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """iptables-restore-translate writes a DNAT that nft refuses, and inverts a list of states."""
    if find_tool("iptables-restore-translate") is None:
        pytest.skip("needs iptables-restore-translate (Debian package iptables)")
    faults = tmp_path / "faults"
    words = ["corpus", "shrink", "--corpus", str(CORPUS / "cases/kind-worker-localnet-guard")]
    assert main([*words, "--translator", "iptables-restore-translate -f {}", "-o", str(faults)]) == 1
    assert "3 differences, reduced" in capsys.readouterr().out
    reports = [(folder / "report.md").read_text() for folder in sorted(faults.iterdir())]
    assert "nft does not load" in reports[0]
    assert "-m tcp -j DNAT --to-destination" in reports[0]
    for folder, report in zip(sorted(faults.iterdir())[1:], reports[1:], strict=True):
        case = read_case(folder)
        assert len(list(case.ruleset.rules())) == len(case.flows[0].steps) == 1
        assert "! --ctstate RELATED,ESTABLISHED,DNAT -j DROP" in report
        assert "ct status dnat counter drop" in report


def test_a_corpus_without_differences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["corpus", "shrink", "--corpus", str(CORPUS / "cases/kind-worker-localnet-guard")]
    assert main([*words, "-o", str(tmp_path / "faults")]) == 0
    assert "0 differences, reduced" in capsys.readouterr().out
    assert not (tmp_path / "faults").exists()
