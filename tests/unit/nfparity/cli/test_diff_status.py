"""``nfparity diff`` reports untested flows, with an exit status of its own; the backends are made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import harness.diff.backends
from backends.model.contract import Availability, Backend, Job, Session
from backends.simulator import SimulatorBackend
from nfparity.cli.main import main
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif
from translate.errors import Refusal, UnsupportedError
from translate.ir import NOWHERE

KIND = Path(__file__).resolve().parents[3] / "corpus/rulesets/kind-node"
FLOWS = (
    '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 1,'
    ' "dport": 53}\n'
    '{"id": "strange", "in": "eth0", "src": "172.18.0.9", "dst": "10.244.0.5", "proto": "tcp", "sport": 2,'
    ' "dport": 80}\n'
)


@dataclass(frozen=True)
class Made:
    """Does what the simulator says, or refuses the rules, or cannot run, or does not forward."""

    name: str
    refuses: bool = False
    lacking: str = ""
    wrong: bool = False

    def probe(self) -> Availability:
        return Availability(not self.lacking, self.lacking)

    def open(self, job: Job) -> AbstractContextManager[Session]:
        if self.refuses:
            raise UnsupportedError((Refusal(NOWHERE, self.name, "colour", "cannot express colour"),))
        if self.wrong:
            job = replace(job, node=replace(job.node, sysctls={"net.ipv4.ip_forward": "0"}))
        return SimulatorBackend().open(job)


Diff = Callable[..., tuple[int, str]]


@pytest.fixture
def diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """``diff(backends, *words)``: the exit status, and what is printed."""
    flows = tmp_path / "flows.jsonl"
    flows.write_text(FLOWS)

    def run(made: tuple[Made, ...], *words: str) -> tuple[int, str]:
        found: dict[str, Callable[[], Backend]] = {"simulator": SimulatorBackend}
        found.update((one.name, lambda one=one: one) for one in made)  # type: ignore[misc]
        monkeypatch.setattr(harness.diff.backends, "BACKENDS", found)
        monkeypatch.setattr("nfparity.cli.diff.BACKENDS", found)
        inputs = (str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))
        status = main(["diff", *inputs, "--corpus", str(flows), *words])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


SAME, REFUSING = Made("iptables-legacy"), Made("nftables", refuses=True)
ABSENT, WRONG = Made("tc-ebpf", lacking="no BCC"), Made("iptables-nft", wrong=True)


@pytest.mark.parametrize(
    ("made", "words", "status", "told"),
    [
        ((SAME,), (), 0, "parity: 2 flows at -O2, no difference\n"),
        ((SAME, REFUSING), (), 4, "not tested: nftables; no difference in the tested part of 2 flows"),
        ((SAME, REFUSING), ("--without", "nftables"), 0, "parity: 2 flows"),
        ((SAME, REFUSING), ("--backends", "iptables-legacy"), 0, "parity: 2 flows"),
        ((SAME, REFUSING), ("--backends", "iptables-legacy,nftables"), 4, "not tested: nftables"),
        ((REFUSING,), ("--backends", "nftables"), 4, "not tested: cannot express the rules:"),
        ((SAME, ABSENT), (), 0, "no difference; 1 backend skipped"),
        ((SAME, ABSENT), ("--backends", "iptables-legacy,tc-ebpf"), 4, "cannot run here: no BCC"),
        ((SAME, ABSENT), ("--backends", "tc-ebpf"), 3, "tc-ebpf cannot run here: no BCC"),
        ((ABSENT,), (), 3, "tc-ebpf cannot run here: no BCC"),
        ((WRONG, REFUSING), (), 1, "; not tested: nftables"),
        ((SAME,), ("--without", "iptables-legacy"), 2, "no backend to compare with the simulator"),
        ((SAME,), ("--without", "nobody"), 2, "unknown backend 'nobody'"),
    ],
)
def test_status(made: tuple[Made, ...], words: tuple[str, ...], status: int, told: str, diff: Diff) -> None:
    found, printed = diff(made, *words)
    assert (found, told in printed) == (status, True), printed


def test_what_was_not_tested_is_told_in_every_form(diff: Diff) -> None:
    made = (SAME, REFUSING, WRONG)
    status, printed = diff((SAME, REFUSING), "--format", "json")
    data = json.loads(printed)
    assert (status, data["result"], data["parity"]) == (4, "not tested", False)
    assert "cannot express colour" in data["backends"][1]["untested"][0]
    status, printed = diff(made, "--format", "sarif")
    run = checked_sarif(json.loads(printed))
    assert (status, run["invocations"][0]["executionSuccessful"]) == (1, False)
    assert {one["partialFingerprints"]["difference"].split()[0] for one in run["results"]} == {"iptables-nft"}
    status, printed = diff(made, "--format", "junit")
    root = checked_junit(printed)
    assert [(suite.get("tests"), suite.get("failures"), suite.get("errors")) for suite in root] == [
        ("2", "0", "0"),
        ("2", "0", "2"),
        ("2", "2", "0"),
    ]
    _, bare = diff(made, "--format", "junit", "--no-times")
    checked_junit(bare, times=False)
