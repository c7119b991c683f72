"""Numbers as iptables reads them: ``strtoumax`` with base 0, and ``strtod``."""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = ["decimal", "leading_digits", "unsigned", "unsigned_start"]

_INTEGER: Final = re.compile(
    r"[ \t\n\v\f\r]*\+?(?:0[xX]([0-9a-fA-F]{1,40})|(0[0-7]{0,40})|([1-9][0-9]{0,40}))"
)
_DIGITS: Final = re.compile(r"[ \t\n\v\f\r]*\+?([0-9]{1,40})")
_HEXADECIMAL: Final = re.compile(r"[+-]?0[xX]")
_DECIMAL: Final = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?\d{1,5})?"
    r"|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,5})?))",
    re.ASCII,
)


def unsigned(text: str, most: int) -> int | None:
    """Return a number from 0 to ``most`` in decimal, ``0x`` or octal (``0…``) form, or None.

    It may follow blanks and ``+`` (``xtables_strtoul`` of libxtables).
    """
    value, end = unsigned_start(text, most)
    return value if end == len(text) else None


def unsigned_start(text: str, most: int) -> tuple[int | None, int]:
    """Return the number at the start of a text (None if it is above ``most``), and its end."""
    match = _INTEGER.match(text)
    if match is None:
        return None, 0
    digits = match[1] or match[2] or match[3]
    value = int(digits, 16 if match[1] else 8 if match[2] else 10)
    return (value if value <= most else None), match.end()


def leading_digits(text: str) -> int | None:
    """Return the decimal number at the start of a text, or None (``atoi``, without its overflow).

    A longer number is cut after 40 digits, and is then still greater than any kernel takes.
    """
    match = _DIGITS.match(text)
    return None if match is None else int(match[1])


def decimal(text: str) -> float | None:
    """Return the number that ``strtod`` reads from the whole text, or None, also for ``inf`` and ``nan``."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    try:
        value = float.fromhex(match[1]) if _HEXADECIMAL.match(match[1]) else float(match[1])
    except OverflowError:
        return None
    return value if math.isfinite(value) else None
