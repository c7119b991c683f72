"""Numbers with their nouns in reports: ``1 flow``, ``2 flows``."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number and its noun; ``plural`` is the noun's plural if it does not just end in s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
