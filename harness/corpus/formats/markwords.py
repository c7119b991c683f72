"""Sentences about targets that set bits: of marks, and from one mark to another."""

from __future__ import annotations

from typing import Final

from translate.ir import HashMark

__all__ = ["copying_text", "hash_mark_text", "marking_text"]

_ALL: Final = 0xFFFFFFFF


def marking_text(name: str, value: int, mask: int, bits: int = 32) -> str:
    """Return a description of ``name = (name & ~mask) ^ value`` for a field of so many bits."""
    if mask == (1 << bits) - 1:
        return f"sets {name} to {value:#x}"
    if value == mask:
        return f"sets {name} {value:#x}"
    if not value:
        return f"clears {name} {mask:#x}"
    if value & mask == 0:
        return f"flips {name} {value:#x}"
    if value & ~mask == 0:
        return f"sets {name} to {value:#x} in the bits {mask:#x}"
    return f"sets {name} to {value:#x} in the bits {mask:#x}, and flips its bits {value & ~mask:#x}"


def copying_text(source: str, taken: int, shift: int, target: str, kept: int) -> str:
    """Return a description of ``target = (target & ~kept) ^ (source & taken)``, shifted."""
    text = source if taken == _ALL else f"{source} & {taken:#x}"
    if shift:
        text = source if taken == _ALL else f"({text})"
        text = f"{text} {'<<' if shift > 0 else '>>'} {abs(shift)}"
    if kept == _ALL:
        return f"sets {target} to {text}"
    if kept == taken and not shift:
        return f"copies the bits {taken:#x} of {source} to {target}"
    return f"clears {target} {kept:#x}, and flips its bits that are set in {text}"


def hash_mark_text(action: HashMark) -> str:
    """Return a description of a mark from a hash: its values, and what is hashed."""
    parts = [
        name
        for name, bits in (
            ("source", action.source_mask),
            ("destination", action.destination_mask),
            ("ports", action.port_mask),
            ("protocol", action.protocol_mask),
        )
        if bits
    ]
    whose = " of its connection" if action.by_connection else ""
    hashed = f"a hash of {_listed(parts)}{whose}" if parts else "a hash of constants"
    last = action.offset + action.modulus - 1
    values = (
        f"{action.offset:#x}" if action.modulus == 1 else f"one of {action.offset:#x} to {last & _ALL:#x}"
    )
    condition = ", if it has one" if action.by_connection else ""
    return f"sets mark to {values} by {hashed}{condition}"


def _listed(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
