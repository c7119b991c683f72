"""Keeping the fewest flows that show everything: the greedy cover of a set by subsets."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Sequence

__all__ = ["cover"]


def cover(choices: Sequence[Collection[Hashable]], given: Collection[Hashable] = ()) -> list[int]:
    """Return which choices to keep, in order, so that nothing that some choice has is lost.

    ``given`` is there already. Each step takes the choice that adds most, the earlier of two
    equals; at most a factor of ln(n) above the fewest possible.
    """
    covered = set(given)
    heap = [(-len(set(c) - covered), i) for i, c in enumerate(choices)]
    heapq.heapify(heap)
    kept: list[int] = []
    while heap:
        gain, index = heapq.heappop(heap)
        now = -len(set(choices[index]) - covered)
        if now == 0:
            continue
        if now != gain:  # others have taken some of it; gains only shrink, so it goes back
            heapq.heappush(heap, (now, index))
            continue
        covered.update(choices[index])
        kept.append(index)
    return sorted(kept)
