"""Jenkins' hash as the kernel computes it (``include/linux/jhash.h``)."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["jhash2", "reciprocal_scale"]

_MASK = 0xFFFFFFFF
_INITVAL = 0xDEADBEEF


def _rol(value: int, shift: int) -> int:
    return (value << shift | value >> (32 - shift)) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Return three words mixed (``__jhash_mix``)."""
    for first, second, third in ((4, 6, 8), (16, 19, 4)):
        a = ((a - c) & _MASK) ^ _rol(c, first)
        c = (c + b) & _MASK
        b = ((b - a) & _MASK) ^ _rol(a, second)
        a = (a + c) & _MASK
        c = ((c - b) & _MASK) ^ _rol(b, third)
        b = (b + a) & _MASK
    return a, b, c


def jhash2(words: Sequence[int], seed: int) -> int:
    """Return Jenkins' hash of 32-bit words (``jhash2``)."""
    a = b = c = (_INITVAL + (len(words) << 2) + seed) & _MASK
    remaining = list(words)
    while len(remaining) > 3:
        a, b, c = _mix((a + remaining[0]) & _MASK, (b + remaining[1]) & _MASK, (c + remaining[2]) & _MASK)
        remaining = remaining[3:]
    if not remaining:
        return c
    padded = [*remaining, 0, 0]
    a, b, c = (a + padded[0]) & _MASK, (b + padded[1]) & _MASK, (c + padded[2]) & _MASK
    c = ((c ^ b) - _rol(b, 14)) & _MASK
    a = ((a ^ c) - _rol(c, 11)) & _MASK
    b = ((b ^ a) - _rol(a, 25)) & _MASK
    c = ((c ^ b) - _rol(b, 16)) & _MASK
    a = ((a ^ c) - _rol(c, 4)) & _MASK
    b = ((b ^ a) - _rol(a, 14)) & _MASK
    return ((c ^ b) - _rol(b, 24)) & _MASK


def reciprocal_scale(value: int, size: int) -> int:
    """Map 32 random bits onto ``0..size-1`` (``reciprocal_scale``)."""
    return value * size >> 32
