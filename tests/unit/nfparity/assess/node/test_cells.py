"""Cells of numbers between intervals."""

from __future__ import annotations

import random
from itertools import combinations

from nfparity.assess.node.cells import Cells
from translate.ir import Interval


def test_two_numbers_are_in_one_cell_if_the_same_intervals_have_them() -> None:
    draw = random.Random(7)
    for _ in range(200):
        intervals = [Interval(*sorted(draw.choices(range(30), k=2))) for _ in range(draw.randrange(6))]
        cells = Cells(intervals)
        for a, b in combinations(range(-1, 32), 2):
            alike = all((a in interval) == (b in interval) for interval in intervals)
            assert (cells.of(a) == cells.of(b)) is alike


def test_numbers_on_both_sides_of_a_constant_are_in_one_cell() -> None:
    cells = Cells([Interval.point(5)])
    assert cells.of(4) == cells.of(6) == 0 != cells.of(5)
