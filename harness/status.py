"""The exit statuses of every command; see also ``nfparity --help``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["DIFFERENCES", "DONE", "NOT_TESTED", "worst_status"]

DONE: Final = 0
"""Parity, or success."""
DIFFERENCES: Final = 1
"""Differences, or findings."""
NOT_TESTED: Final = 4
"""No difference was observed, but a part was not tested."""


def worst_status(statuses: Iterable[int]) -> int:
    """Return the combined status of several runs.

    An error is worse than a difference, and a difference is worse than an untested part.
    """
    return max(statuses, key=lambda status: (status != DONE, status != NOT_TESTED, status), default=DONE)
