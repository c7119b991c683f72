"""The vectors were computed by the macros of include/linux/jhash.h in C."""

from __future__ import annotations

import pytest

from backends.simulator.nat.hashing import jhash2, reciprocal_scale

VECTORS = [
    ((), 0, 0xDEADBEEF),
    ((1,), 0x1EEF, 0xC04A2F5E),
    (
        (
            1,
            2,
        ),
        0x3DDE,
        0xC3220E96,
    ),
    (
        (
            1,
            2,
            3,
        ),
        0x5CCD,
        0xA3DAD4FD,
    ),
    (
        (
            1,
            2,
            3,
            4,
        ),
        0x7BBC,
        0x23E038A8,
    ),
    (
        (
            1,
            2,
            3,
            4,
            5,
        ),
        0x9AAB,
        0x127EDBA3,
    ),
    (
        (
            1,
            2,
            3,
            4,
            5,
            6,
        ),
        0xB99A,
        0xC1039087,
    ),
    (
        (
            1,
            2,
            3,
            4,
            5,
            6,
            7,
        ),
        0xD889,
        0x66849F30,
    ),
    ((0x2C00010A, 0, 0, 0), 0x0100630A, 0xF26B7C4B),
]


@pytest.mark.parametrize(("words", "seed", "expected"), VECTORS)
def test_jhash2_is_the_kernels(words: tuple[int, ...], seed: int, expected: int) -> None:
    assert jhash2(words, seed) == expected


def test_reciprocal_scale_covers_the_range_and_no_more() -> None:
    assert reciprocal_scale(0, 9) == 0
    assert reciprocal_scale(0xFFFFFFFF, 9) == 8
