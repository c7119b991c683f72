"""Cells: the parts of a range of numbers that no interval divides."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from translate.ir import Interval

__all__ = ["Cells"]


class Cells:
    """The cells of some intervals: two numbers are in one cell if each interval has both or neither."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        changes: dict[int, list[tuple[int, bool]]] = {}
        for place, interval in enumerate(dict.fromkeys(intervals)):
            changes.setdefault(interval.low, []).append((place, True))
            changes.setdefault(interval.high + 1, []).append((place, False))
        self._edges = sorted(changes)
        self._cells = [0]
        """The cell before the first edge, and the one from each edge on."""
        known: dict[frozenset[int], int] = {frozenset(): 0}
        inside: set[int] = set()
        for edge in self._edges:
            for place, begins in changes[edge]:
                (inside.add if begins else inside.discard)(place)
            self._cells.append(known.setdefault(frozenset(inside), len(known)))

    def of(self, value: int) -> int:
        """Return the number of a value's cell; 0 is the cell outside of all intervals."""
        return self._cells[bisect_right(self._edges, value)]
