"""The declared size of a large map.

nf_tables puts a set with a declared size into a table of fixed width (``nft_hash``), and a set without a
declared size into a table that grows (``nft_rhash``). The fixed table takes less memory per element and is
faster to walk. The kernel walks all elements of a verdict map whenever a transaction adds a jump to it
(``nft_lookup_validate``). The disadvantage: a full set refuses elements, so a map that outgrows its size is
deleted and declared again (:mod:`translate.nft.change`). Small maps gain nothing and have no size.
"""

from __future__ import annotations

from typing import Final

__all__ = ["map_size_for"]

_LEAST: Final = 1024
"""The smallest number of elements of a map with a size."""


def map_size_for(elements: int) -> int | None:
    """Return the size of a map with this number of elements, or None for no fixed size.

    The size depends only on the number of elements and never falls as it grows, so a map that is changed step
    by step is at least as large as a new one. It is three quarters of a power of two: the kernel rounds four
    thirds of a size up to a power of two (``nft_hash_buckets``), so a smaller size saves nothing.
    """
    if elements < _LEAST:
        return None
    room = _LEAST * 3 // 2
    while room < elements:
        room *= 2
    return room
