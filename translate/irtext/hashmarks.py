"""Marks from a hash as text: ``hash-mark src 0xffffffff dst 0x0 ports 0xffffffff ...``."""

from __future__ import annotations

from typing import Final

from translate.ir import HashMark
from translate.irtext.lexer import Cursor

__all__ = ["format_hash_mark", "take_hash_mark"]

_NUMBERS: Final = {
    "src": "source_mask",
    "dst": "destination_mask",
    "ports": "port_mask",
    "with": "port_set",
    "protocol": "protocol_mask",
    "seed": "seed",
    "modulus": "modulus",
    "offset": "offset",
}
"""The word before each number of a HashMark."""


def format_hash_mark(action: HashMark) -> str:
    """Return the text of a HashMark."""
    numbers = (f"{word} {getattr(action, name):#x}" for word, name in _NUMBERS.items())
    return " ".join(("hash-mark", *(["connection"] if action.by_connection else ()), *numbers))


def take_hash_mark(cursor: Cursor) -> HashMark:
    """Read a HashMark after its first word. Raises TextError."""
    by_connection = cursor.take("connection")
    numbers = {}
    for word, name in _NUMBERS.items():
        cursor.expect(word)
        numbers[name] = cursor.number(f"the number of {word}")
    return HashMark(**numbers, by_connection=by_connection)
