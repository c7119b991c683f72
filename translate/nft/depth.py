"""How deep chains nest: nf_tables has an end to it that x_tables has not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.errors import Refusal
from translate.nft.model import NftTable
from translate.nft.refusal import CannotSay

__all__ = ["MAX_DEPTH", "too_deep"]

MAX_DEPTH: Final = 15
"""Most chains below a base chain: ``nft_chain_validate`` stops at level 16 (``NFT_JUMP_STACK_SIZE``)."""


def too_deep(table: NftTable) -> Iterator[Refusal]:
    """Yield a refusal for every rule whose jump goes deeper than nf_tables allows.

    Jumps and gotos count alike, as they do in the kernel's check.
    """
    chains = {chain.name: chain for chain in table.chains}
    depth = {chain.name: 0 for chain in table.chains if chain.base is not None}
    level = list(depth)
    for deep in range(1, MAX_DEPTH + 2):
        below: dict[str, None] = {}
        for name in level:
            for rule in chains[name].rules:
                if rule.targets and deep > MAX_DEPTH:
                    reason = f"more than {MAX_DEPTH} chains below a built-in one"
                    yield CannotSay("jump-depth", reason).at(rule.origin)
                below.update(dict.fromkeys(rule.targets))
        level = list(below)
