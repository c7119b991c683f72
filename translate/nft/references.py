"""References to maps in rules that are written again, in a transaction after that which declared the maps.

nft reads the types of such a map from the kernel. If its data have a port, nft 1.0.6 and 1.1.3 refuse the
rule: they compare the protocol of the data, ``th``, with that of the rule ("conflicting protocols
specified"). They accept it if the type of a part of the key has no name, as that of ``numgen``, and if the
same transaction declares the map.
"""

from __future__ import annotations

from collections.abc import Set

from translate.nft.model import NftChain, NftMap, NftTable

__all__ = ["uses", "with_references"]

_UNNAMED = ("numgen", "jhash", "symhash")


def with_references(table: NftTable, chains: Set[str], maps: Set[str]) -> tuple[Set[str], Set[str]]:
    """Return the chains of ``table`` whose rules must be written again, and the maps to be declared again.

    ``chains`` and ``maps`` are those for which there are other reasons. To be declared again, a map must be
    deleted, and it can only be deleted when no rule uses it.
    """
    refused = {each.name for each in table.maps if _is_refused(each)}
    if not refused:
        return chains, maps
    used = {chain.name: uses(chain) for chain in table.chains}
    while True:
        more_maps = maps | {name for chain in chains if chain in used for name in used[chain] & refused}
        more_chains = chains | {chain for chain, names in used.items() if names & more_maps}
        if len(more_chains) == len(chains) and len(more_maps) == len(maps):
            return chains, maps
        chains, maps = more_chains, more_maps


def uses(chain: NftChain) -> Set[str]:
    """Return the names of the maps and sets in the rules of a chain."""
    words = (word for rule in chain.rules for part in rule.parts for word in part.split())
    return {word[1:] for word in words if word[0] == "@"}


def _is_refused(each: NftMap) -> bool:
    has_port = each.data is not None and "th dport" in each.data
    return has_port and not any(word in each.key for word in _UNNAMED)
