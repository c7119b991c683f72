"""Words of a packet: 32 bits at an offset from its IP header; the text form of their tests (``xt_u32``)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from translate.dataclass import dataclass
from translate.ir.values import Interval

__all__ = [
    "HEADER_LENGTH_WORD",
    "WORD_BITS",
    "MaskedWord",
    "Word",
    "WordError",
    "WordOperator",
    "masked",
    "read_words",
    "words_text",
]

WORD_BITS: Final = 32
"""The width of a word."""
_ALL: Final = (1 << WORD_BITS) - 1
_MOST: Final = 10
"""The maximum number of words in a test, and of numbers and of values in a word (``XT_U32_MAXSIZE``)."""


class WordOperator(StrEnum):
    """The operators behind the first offset; ``@`` adds the value to the base, and reads again."""

    AND = "&"
    LEFT = "<<"
    RIGHT = ">>"
    AT = "@"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """The word at ``offset``, changed by ``steps`` in order, is in one of ``values``.

    ``@`` adds the value so far to the base, which is the start of the IP header at first. It then reads the
    word whose offset from the new base is the number after ``@``. A word that is not whole in the packet has
    no value (``u32_match_it``).
    """

    offset: int
    steps: tuple[tuple[WordOperator, int], ...]
    values: tuple[Interval, ...]


class WordError(ValueError):
    """Text that is not a test of words, with the offset of the fault."""

    def __init__(self, offset: int, text: str) -> None:
        self.offset = offset
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class MaskedWord:
    """A word without ``@`` as a mask and a shift to the left (to the right if it is negative)."""

    offset: int
    mask: int
    shift: int


HEADER_LENGTH_WORD: Final = MaskedWord(0, 0x0F000000, -22)
"""The length of the header of IPv4 in bytes: ``0>>22&0x3C``."""


def masked(offset: int, steps: tuple[tuple[WordOperator, int], ...]) -> MaskedWord:
    """Return the mask and shift that have the same effect as the steps of a word without ``@``."""
    mask, shift = _ALL, 0
    for operator, number in steps:
        match operator:
            case WordOperator.AND:
                mask &= (number >> shift if shift >= 0 else number << -shift) & _ALL
            case WordOperator.LEFT:
                shift += number
                mask &= _ALL >> shift if shift >= 0 else _ALL
            case WordOperator.RIGHT:
                shift -= number
                mask &= _ALL << -shift & _ALL if shift <= 0 else _ALL
            case WordOperator.AT:
                raise AssertionError("a word that is read at an offset that another word gives")
    return MaskedWord(offset, mask, shift)


def words_text(words: tuple[Word, ...]) -> str:
    """Return words as iptables-save prints them: ``0x6&0xff=0x1&&0x0=0x2:0x4``."""
    return "&&".join(map(_word_text, words))


def _word_text(word: Word) -> str:
    steps = "".join(f"{operator}{number:#x}" for operator, number in word.steps)
    values = ",".join(f"{v.low:#x}" if v.is_point else f"{v.low:#x}:{v.high:#x}" for v in word.values)
    return f"{word.offset:#x}{steps}={values}"


_NUMBER: Final = re.compile(r"\s*\+?(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))\s*")
_OPERATOR: Final = re.compile(r"&(?!&)|<<|>>|@")


def read_words(text: str) -> tuple[Word, ...]:
    """Return the words of a text that ``u32_parse`` of iptables takes. Raises WordError."""
    reading = _Reading(text)
    words = [_word(reading)]
    while not reading.ended:
        reading.expect("&&")
        words.append(_word(reading))
        if len(words) > _MOST:
            raise reading.fault(f"more than {_MOST} tests")
    return tuple(words)


def _word(reading: _Reading) -> Word:
    offset = reading.number()
    steps: list[tuple[WordOperator, int]] = []
    while not reading.take("="):
        operator = reading.operator()
        number = reading.number()
        if operator in (WordOperator.LEFT, WordOperator.RIGHT) and number >= WORD_BITS:
            raise reading.fault(f"a shift by {number} bits")
        steps.append((operator, number))
        if len(steps) >= _MOST:
            raise reading.fault(f"more than {_MOST} numbers before the values")
    values = [_values(reading)]
    while reading.take(","):
        values.append(_values(reading))
        if len(values) > _MOST:
            raise reading.fault(f"more than {_MOST} values")
    return Word(offset=offset, steps=tuple(steps), values=tuple(values))


def _values(reading: _Reading) -> Interval:
    low = reading.number()
    return Interval(low, reading.number() if reading.take(":") else low)


@dataclass(slots=True)
class _Reading:
    """A text and the place up to which it is read."""

    text: str
    at: int = 0

    @property
    def ended(self) -> bool:
        return self.at == len(self.text)

    def fault(self, text: str) -> WordError:
        return WordError(self.at, text)

    def take(self, symbol: str) -> bool:
        is_next = self.text.startswith(symbol, self.at)
        if is_next:
            self.at += len(symbol)
        return is_next

    def expect(self, symbol: str) -> None:
        if not self.take(symbol):
            raise self.fault(f'expected "{symbol}"')

    def number(self) -> int:
        match = _NUMBER.match(self.text, self.at)
        if match is None:
            raise self.fault("expected a number")
        digits = match[1] or match[2] or match[3]
        value = int(digits[:40], 16 if match[1] else 8 if match[2] else 10)
        if value > _ALL or len(digits) > 40:
            raise self.fault("a number above 0xffffffff")
        self.at = match.end()
        return value

    def operator(self) -> WordOperator:
        match = _OPERATOR.match(self.text, self.at)
        if match is None:
            raise self.fault('expected one of "&", "<<", ">>", "@" and "="')
        self.at = match.end()
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return WordOperator(match[0])
