"""NFQUEUE without a program that reads the queue, on every backend of this kernel that has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from backends.nftables.backend import NftablesLoader
from backends.replay.availability import kernel_lacks
from nfparity.cli import main

CASE = Path(__file__).parents[1] / "corpus/cases-of-modules/queues"
NFT = "table ip t {\n\tchain c {\n\t\ttype filter hook input priority 0;\n\t\tqueue num 0\n\t}\n}\n"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def test_both_kinds_of_iptables_agree_with_the_simulator() -> None:
    assert main(["diff", "--corpus", str(CASE), "--backends", "simulator,iptables-legacy,iptables-nft"]) == 0


@pytest.mark.parametrize("level", [0, 2])
def test_nftables_agrees(level: int) -> None:
    if not kernel_lacks(NftablesLoader(NFT)).ok:
        pytest.skip("this kernel has no nft_queue (CONFIG_NFT_QUEUE)")
    assert main(["diff", "--corpus", str(CASE), "--backends", "simulator,nftables", f"-O{level}"]) == 0
