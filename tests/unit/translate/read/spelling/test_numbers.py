from __future__ import annotations

import pytest

from translate.read.spelling.numbers import decimal, leading_digits, unsigned


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("010", 8),
        ("0x1F", 31),
        ("0X1f", 31),
        (" +5", 5),
        ("08", None),
        ("0x", None),
        ("-1", None),
        ("5 ", None),
        ("", None),
        ("+", None),
        ("1e3", None),
        ("٣", None),
        ("256", None),
        ("9" * 60, None),
    ],
)
def test_unsigned(text: str, number: int | None) -> None:
    assert unsigned(text, 255) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", 0.5),
        (".5", 0.5),
        ("5.", 5.0),
        (" +5e-1", 0.5),
        ("-0.0", 0.0),
        ("0x1p-1", 0.5),
        ("0x.8", 0.5),
        ("1e", None),
        ("nan", None),
        ("inf", None),
        ("1e99999", None),
        ("1/2", None),
        ("", None),
    ],
)
def test_decimal(text: str, number: float | None) -> None:
    assert decimal(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("7", 7),
        (" +08x", 8),
        ("", None),
        ("-1", None),
        ("x1", None),
        ("٣", None),
        ("1" * 5000, int("1" * 40)),
    ],
)
def test_leading_digits(text: str, number: int | None) -> None:
    assert leading_digits(text) == number
