"""Selection of few flows that meet all goals: the greedy cover of a set by subsets."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Hashable, Sequence

__all__ = ["cover"]


def cover(choices: Sequence[Collection[Hashable]], elsewhere: Collection[Hashable] = ()) -> list[int]:
    """Return the indices of choices to keep, in order, such that they still cover all elements.

    The elements of ``elsewhere`` are already covered. Each step takes the choice that adds most, or the
    earlier of two equals; the result is at most ln(n) times as long as the shortest.
    """
    covered = set(elsewhere)
    heap = [(-len(set(c) - covered), i) for i, c in enumerate(choices)]
    heapq.heapify(heap)
    kept: list[int] = []
    while heap:
        gain, index = heapq.heappop(heap)
        now = -len(set(choices[index]) - covered)
        if now == 0:
            continue
        if now != gain:  # other choices cover a part of it by now: push it back with its new gain
            heapq.heappush(heap, (now, index))
            continue
        covered.update(choices[index])
        kept.append(index)
    return sorted(kept)
