"""How many elements a large map is declared to take.

nf_tables puts a set of a declared size into a table of fixed width (``nft_hash``), and one without into a
table that grows (``nft_rhash``). The fixed one takes less for each element, and is quicker to walk, which
the kernel does with every element of a verdict map when a transaction adds a jump to it
(``nft_lookup_validate``). What it costs is that a full set refuses elements, so that a map which outgrows
its room has to be made anew (:mod:`translate.nft.change`); small maps have nothing to gain and are left to
the kernel.
"""

from __future__ import annotations

from typing import Final

__all__ = ["room_for"]

_LEAST: Final = 1024
"""Elements from which on a map has a size."""


def room_for(elements: int) -> int | None:
    """Return the size of a map that has so many elements, or None where it grows with them.

    It follows from their number alone and never falls as that grows, so that a map that is changed step by
    step has at least the room that a fresh one would have. Three quarters of a power of two: the kernel
    rounds four thirds of a size up to one (``nft_hash_buckets``), and room up to there costs nothing.
    """
    if elements < _LEAST:
        return None
    room = _LEAST * 3 // 2
    while room < elements:
        room *= 2
    return room
