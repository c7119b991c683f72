from __future__ import annotations

import pytest

from translate.ir import MaskedWord, Word, WordError, WordOperator, masked, read_words, words_text
from translate.ir.values import Interval

AND, LEFT, RIGHT, AT = WordOperator.AND, WordOperator.LEFT, WordOperator.RIGHT, WordOperator.AT


def test_a_text_of_the_manual() -> None:
    (protocol, port) = read_words(" 6 & 0xFF = 1 && 0 >> 22 & 0x3C @ 0 >> 24 = 010 , 13 : 14")
    assert protocol == Word(offset=6, steps=((AND, 255),), values=(Interval(1, 1),))
    assert port.steps == ((RIGHT, 22), (AND, 0x3C), (AT, 0), (RIGHT, 24))
    assert port.values == (Interval(8, 8), Interval(13, 14))


@pytest.mark.parametrize("text", ["0x6&0xff=0x1", "0x0=0x0:0xffffffff&&0x0<<0x1f@0xfffffffc=0x1,0x2,0x5:0x3"])
def test_the_form_of_iptables_save(text: str) -> None:
    assert words_text(read_words(text)) == text


@pytest.mark.parametrize(
    ("text", "offset", "message"),
    [
        ("", 0, "expected a number"),
        ("0", 1, 'expected one of "&"'),
        ("=1", 0, "expected a number"),
        ("0=", 2, "expected a number"),
        ("0=1&2", 3, 'expected "&&"'),
        ("0=1 2", 4, 'expected "&&"'),
        ("0&&1=2", 1, 'expected one of "&"'),
        ("0<1=2", 1, 'expected one of "&"'),
        ("0=1,", 4, "expected a number"),
        ("0=08", 3, 'expected "&&"'),
        ("0=4294967296", 2, "a number above 0xffffffff"),
        ("-1=0", 0, "expected a number"),
        ("0>>32=0", 5, "a shift by 32 bits"),
        ("0" + "&1" * 10 + "=0", 21, "more than 10 numbers"),
        ("0=1" + ",1" * 10, 23, "more than 10 values"),
        ("0=1" + "&&0=1" * 10, 53, "more than 10 tests"),
    ],
)
def test_text_that_iptables_does_not_take(text: str, offset: int, message: str) -> None:
    with pytest.raises(WordError, match=message) as caught:
        read_words(text)
    assert caught.value.offset == offset


def test_the_longest_texts() -> None:
    assert len(read_words("&&".join(["0=1"] * 10))) == 10
    assert len(read_words("0" + "&1" * 9 + "=1")[0].steps) == 9
    assert len(read_words("0=" + ",".join(["1"] * 10))[0].values) == 10


@pytest.mark.parametrize("number", [0x12345678, 0xFFFFFFFF, 0x80000001, 0x0F0F0F0F])
@pytest.mark.parametrize(
    "text",
    [
        "0",
        "0&0xff00",
        "0>>22&0x3c",
        "0<<8>>24",
        "0>>8<<8",
        "0>>31>>31",
        "0<<4&0xff0>>8",
        "0<<31<<1&1",
        "0>>9<<3>>1",
    ],
)
def test_masks_and_shifts_are_one_mask_and_one_shift(text: str, number: int) -> None:
    (word,) = read_words(f"{text}=0")
    value = number
    for operator, by in word.steps:
        value = {AND: value & by, LEFT: value << by & 0xFFFFFFFF, RIGHT: value >> by}[operator]
    part = masked(word.offset, word.steps)
    taken = number & part.mask
    assert (taken << part.shift if part.shift >= 0 else taken >> -part.shift) == value
    assert isinstance(part, MaskedWord)
