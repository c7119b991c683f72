"""Cases in which only iptables-legacy agrees with the simulator: known limits (docs/limits.md)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from harness.corpus.formats.jsonlines import read_flows
from nfparity.cli import main

CASES = Path(__file__).parents[1] / "corpus" / "cases-of-iptables"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

OF_NFT = {"tcp", "udp", "here-tcp", "made-here"}
"""The flows for whose rules iptables-nft writes expressions of nftables; their numbers are left out."""


def different(case: str, backend: str, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """Return the ids of the flows that differ on a backend, with the causes in the report."""
    capsys.readouterr()
    status = main(
        ["diff", "--corpus", str(CASES / case), "--backends", f"simulator,{backend}", "--format", "json"]
    )
    report = json.loads(capsys.readouterr().out)
    assert status == int(bool(report["differences"]))
    return {d["flow_id"]: d["rules"] for d in report["differences"]}


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_the_kernel_does_as_the_simulator(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert different(case, "iptables-legacy", capsys) == {}


@pytest.mark.parametrize("case", ["truncated", "truncated6"])
def test_iptables_nft_passes_them_by_its_own_expressions(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    causes = different(case, "iptables-nft", capsys)
    known = {f for f, rules in causes.items() if "ends within its transport header" in "".join(rules)}
    assert {flow.rstrip("0123456789").rstrip("-") for flow in known} == OF_NFT


@pytest.mark.parametrize("case", ["truncated", "truncated6"])
def test_only_packets_that_iptables_drops_differ_on_nftables(
    case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flows = {
        flow.id: flow.first.packet
        for flow in read_flows((CASES / case / "flows.jsonl").read_bytes(), name=case)
    }
    causes = different(case, "nftables", capsys)
    assert causes
    for flow, rules in causes.items():
        known = not flows[flow].truncated or "ends within its transport header" in "".join(rules)
        assert known, flow
