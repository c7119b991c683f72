"""Cases of rules that nftables refuses: both kinds of iptables, and tc if it can, against the simulator."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfparity.cli import main

CASES = Path(__file__).parents[1] / "corpus" / "cases-without-nft"
TRANSLATED_FOR_TC = (
    *("bytecode", "bytecode6", "destination-options6", "eui64", "hash-marks", "hash-marks6", "npt"),
    *("hash-marks-of-fragments", "hash-marks-of-fragments6", "rate-windows"),
)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


@pytest.mark.parametrize("case", sorted(folder.name for folder in CASES.iterdir()))
def test_both_kinds_of_iptables_agree_with_the_simulator(case: str) -> None:
    backends = "simulator,iptables-legacy,iptables-nft"
    assert main(["diff", "--corpus", str(CASES / case), "--backends", backends]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("case", TRANSLATED_FOR_TC)
def test_the_tc_program_agrees(case: str, level: int) -> None:
    backends = "simulator,tc-ebpf"
    assert main(["diff", "--corpus", str(CASES / case), "--backends", backends, f"-O{level}"]) == 0
