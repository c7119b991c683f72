"""The exit statuses of every command; see also ``nfparity --help``."""

from __future__ import annotations

from typing import Final

__all__ = ["DIFFERENCES", "DONE", "NOT_TESTED"]

DONE: Final = 0
"""Parity, or what was asked is done."""
DIFFERENCES: Final = 1
"""Differences, or findings."""
NOT_TESTED: Final = 4
"""No difference was seen, but something that was to be tested was not."""
