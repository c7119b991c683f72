"""nftables tables of other programs beside kube-proxy's rules, as a snapshot has them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from backends.iptables.backend import IptablesBackend
from nfparity.assess.snapshots import AssessOptions, assess_snapshot
from nfparity.assess.summary import Summary
from nfparity.snapshot import Snapshot, Variant
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Cluster, kube_proxy_rules
from translate.ir import Family
from translate.read import read_ruleset

__all__ = ["TWO_MODES", "assessed_beside", "listed"]

TWO_MODES: Final = Path(__file__).parents[2] / "corpus/two-modes"
"""The rules of real tools, each in its iptables and its nftables mode."""


def listed(text: str) -> str:
    """Return the output of ``nft -j list ruleset`` for rules in text form."""
    script = "nft -f - && nft -j list ruleset"
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


def assessed_beside(cluster: Cluster, nft: str, *, corpus: bool = False, only: Sequence[str] = ()) -> Summary:
    """Return the assessment of a node with the rules of a cluster and other tables."""
    require(IptablesBackend("iptables-legacy"))
    rules = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules")
    snapshot = Snapshot(name="node", rules={(Variant.LEGACY, Family.IP): rules}, node=cluster.node, nft=nft)
    options = AssessOptions(version=(1, 36), corpus=corpus, only=tuple(only))
    return assess_snapshot(snapshot, options, progress=lambda *_: None)
