"""The number of examples that a property is tried with: each of them in ``make test-all``, a third otherwise.

Properties draw the same examples in every run, so those of ``make test`` are the first of those of
``make test-all``.
"""

from __future__ import annotations

from typing import Final

__all__ = ["examples", "leave_out_most"]

_SHARE: Final = 3
_shares = [1]


def leave_out_most() -> None:
    """Try a third of the examples from now on."""
    _shares[:] = [_SHARE]


def examples(count: int) -> int:
    """Return how many of ``count`` examples are tried."""
    return -(-count // _shares[0])
