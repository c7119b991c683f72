"""The engine leaves nothing that can be left out by itself."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from harness.shrink.engine import reduce_with, smaller_lists

NEEDED = st.frozensets(st.integers(0, 40), max_size=6)


@given(st.integers(0, 41), NEEDED)
def test_the_needed_items_are_left_in_order(length: int, needed: frozenset[int]) -> None:
    items = range(length)
    kept = needed & set(items)
    assert smaller_lists(items, lambda some: kept <= set(some)) == tuple(sorted(kept))


def test_passes_are_repeated_until_none_helps() -> None:
    def halves(number: int) -> Iterator[int]:
        if number % 2 == 0:
            yield number // 2

    def less(number: int) -> Iterator[int]:
        yield number - 1

    assert reduce_with(100, (halves, less), lambda number: number >= 7) == 7
    assert reduce_with(100, (halves,), lambda _: False) == 100
