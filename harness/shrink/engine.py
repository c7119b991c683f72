"""Search for a small value that still has a given property."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

__all__ = ["reduce_with", "smaller_lists"]

T = TypeVar("T")


def smaller_lists(items: Sequence[T], accepted: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return the items that remain after every unnecessary run of items is left out.

    Runs of half the items are tried first, then of a quarter, and so on to single items (Zeller and
    Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002). Items keep their order.
    """
    left = tuple(items)
    size = max(1, len(left) // 2)
    while size:
        at = 0
        while at < len(left):
            rest = left[:at] + left[at + size :]
            if accepted(rest):
                left = rest
            else:
                at += size
        size = min(size // 2, len(left))
    return left


def reduce_with(start: T, passes: Iterable[Callable[[T], Iterator[T]]], accepted: Callable[[T], bool]) -> T:
    """Return the smallest value that the passes lead to, beginning with ``start``.

    A pass yields smaller values. The first that is ``accepted`` takes the place of ``start``, and the pass
    begins again with it. The passes are repeated until none of them yields a value that is accepted.
    """
    order = tuple(passes)
    best, changed = start, True
    while changed:
        changed = False
        for proposals in order:
            smaller = next(filter(accepted, proposals(best)), None)
            while smaller is not None:
                best, changed = smaller, True
                smaller = next(filter(accepted, proposals(best)), None)
    return best
