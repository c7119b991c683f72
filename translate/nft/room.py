"""The declared size of a large map.

nf_tables puts a set of a declared size into a table of fixed width (``nft_hash``), and one without into a
table that grows (``nft_rhash``). The fixed table takes less memory per element and is faster to walk. The
kernel walks all elements of a verdict map whenever a transaction adds a jump to it
(``nft_lookup_validate``). The price: a full set refuses elements, so that a map that outgrows its size must
be made anew (:mod:`translate.nft.change`). Small maps gain nothing and have no size.
"""

from __future__ import annotations

from typing import Final

__all__ = ["room_for"]

_LEAST: Final = 1024
"""The number of elements from which on a map has a size."""


def room_for(elements: int) -> int | None:
    """Return the size of a map with so many elements, or None if it has no fixed size.

    The size depends on the number of elements alone and never falls as that grows, so that a map that is
    changed step by step is at least as large as a new one. It is three quarters of a power of two: the
    kernel rounds four thirds of a size up to a power of two (``nft_hash_buckets``), so that a size below
    that saves nothing.
    """
    if elements < _LEAST:
        return None
    room = _LEAST * 3 // 2
    while room < elements:
        room *= 2
    return room
