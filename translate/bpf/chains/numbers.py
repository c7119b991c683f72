"""Numbers of tests and actions as C: literals, or members of a lookup's entry."""

from __future__ import annotations

from typing import Protocol

__all__ = ["NumberText", "as_literal", "literal"]


class NumberText(Protocol):
    """Renders a number of an action in C: as a literal, or as a member of a map entry."""

    def __call__(self, value: int, bits: int = 32) -> str:
        """Return the text of a number with this many bits."""
        ...


def literal(value: int) -> str:
    """Return a number in C, which has no literals wider than 64 bits."""
    if value >> 64:
        return f"ADDRESS({value >> 64:#x}, {value & (1 << 64) - 1:#x})"
    return f"{value:#x}"


def as_literal(value: int, bits: int = 32) -> str:
    """Render a number as its literal."""
    return literal(value)
