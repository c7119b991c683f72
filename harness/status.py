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
"""No difference was seen, but something that was to be tested was not."""


def worst_status(statuses: Iterable[int]) -> int:
    """Return the status of several runs together.

    A difference in one is a difference, whatever another has not tested; errors are worse than both.
    """
    return max(statuses, key=lambda one: (one != DONE, one != NOT_TESTED, one), default=DONE)
