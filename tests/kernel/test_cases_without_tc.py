"""Cases that the tc program refuses, on the other backends at every level."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfparity.cli import main

FOLDER = Path(__file__).parent.parent / "corpus" / "cases-without-tc"

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def test_every_iptables_agrees_with_the_simulator() -> None:
    assert main(["diff", "--corpus", str(FOLDER), "--backends", "iptables-legacy,iptables-nft"]) == 0


@pytest.mark.parametrize("level", ["0", "1", "2"])
def test_nftables_agrees_at_every_level(level: str) -> None:
    assert main(["diff", "--corpus", str(FOLDER), "--backends", "nftables", "-O", level]) == 0
