"""A condensed Program as nftables text, with the elements of all members."""

from __future__ import annotations

from translate.condense.elements import family_elements
from translate.condense.program import CondensedProgram, key_of
from translate.dataclass import replace
from translate.errors import UnsupportedError
from translate.nft import NftOutput, output_of
from translate.nft.legal import DnatTarget
from translate.nft.legalise import legalise
from translate.nft.printer import printed

__all__ = ["emit_condensed"]


def emit_condensed(program: CondensedProgram) -> NftOutput | None:
    """Return the text of a condensed Program; None if it must be emitted from every entry."""
    try:
        legal = legalise(program.sample)
    except UnsupportedError:
        return None  # members are refused as well, and each of them must be reported
    table = printed(legal)
    missing = set(program.entries)
    maps = []
    for map_, legal_map in zip(table.maps, legal.maps, strict=True):
        key = None if legal_map.lookup is None else key_of(legal_map.lookup)
        entries = None if key is None else program.entries.get(key)
        if entries is not None and key is not None:
            missing.discard(key)
            elements = family_elements(
                entries,
                key[0],
                map_.elements.listed(),
                program.ruleset,
                translated=isinstance(legal_map.data, DnatTarget),
            )
            map_ = replace(map_, elements=elements)
        maps.append(map_)
    return None if missing else output_of(replace(table, maps=maps), legal.notes)
