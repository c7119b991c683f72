"""The two places in the kernel where a node's iptables rules can be."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["Stack"]


class Stack(StrEnum):
    """Where iptables rules are loaded; both can hold some, and then a packet meets both."""

    LEGACY = "legacy"
    """x_tables, which ``iptables-legacy`` writes to."""

    NFT = "nft"
    """nf_tables, which ``iptables-nft`` writes to."""
