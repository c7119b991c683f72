"""Tests of words (``-m u32``) as matches on the bytes of a header.

A word with masks and shifts is one masked word, whose values are shifted back. ``0>>22&0x3C@`` in IPv4 leads
to the transport header. Whether nft reads that in a later fragment depends on the offset (``fragments``), so
another test must exclude these. nft computes no other offset from a packet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from translate.ir import (
    AUTHENTICATION,
    HEADER_LENGTH_WORD,
    WORD_BITS,
    Family,
    Field,
    FieldTest,
    Interval,
    MaskedWord,
    Test,
    Word,
    WordOperator,
    WordTest,
    masked,
)
from translate.ir.intervals import IntervalSet, intersection, union
from translate.nft.legal import Part, WordMatch
from translate.nft.limits.refusal import CannotSay

__all__ = ["excludes_later_fragments", "tests_for_first", "word_matches"]

_ALL: Final = (1 << WORD_BITS) - 1
_MOST_OFFSET: Final = 0xFF
"""The last byte at which nft begins to read (``NFTA_PAYLOAD_OFFSET``)."""
_OF_FIRST_FRAGMENTS: Final = frozenset(
    {
        *(Field.SPORT, Field.DPORT, Field.ICMP_TYPE, Field.ICMP_CODE),
        *(Field.TCP_FLAGS, Field.TCP_MSS, Field.TCP_OPTIONS),
        *(Field.ESP_SPI, Field.IPCOMP_CPI, *AUTHENTICATION),
    }
)
"""Fields that later fragments do not have."""
_FRAGMENT_WORD: Final = 4
_FRAGMENT_OFFSET: Final = 0x1FFF
_NEVER: Final = WordMatch("nh", 0, _ALL, (Interval.point(0),))
"""A match that holds for no packet: a header begins with the version of IP."""


def word_matches(test: WordTest, tests: Sequence[Test], family: Family) -> list[Part]:
    """Return the matches of a test that is not negated, in a rule with ``tests``. Raises CannotSay."""
    assert not test.negated, "written as its opposite"
    parts: list[Part] = []
    whole = any(map(excludes_later_fragments, tests))
    for word in test.words:
        header, offset, part = _place(word, family)
        if header == "th" and not whole:
            reason = (
                "nftables does not read the data of every later fragment; exclude later fragments before,"
                " for example with 4&0x1FFF=0"
            )
            raise CannotSay("u32", reason)
        if offset > _MOST_OFFSET:
            raise CannotSay("u32", f"nftables reads no bytes beyond byte {_MOST_OFFSET} of a header")
        values = _before_shift(word.values, part)
        whole = whole or (
            family is Family.IP and header == "nh" and tests_for_first(part.offset, part.mask, values)
        )
        parts.append(WordMatch(header, offset, part.mask, values) if values else _NEVER)
    return parts


def _place(word: Word, family: Family) -> tuple[Literal["nh", "th"], int, MaskedWord]:
    """Return the header of the compared word, the offset in this header, and the word's mask and shift."""
    places = [index for index, (operator, _) in enumerate(word.steps) if operator is WordOperator.AT]
    if not places:
        return "nh", word.offset, masked(word.offset, word.steps)
    at = places[0]
    if (
        family is not Family.IP
        or len(places) > 1
        or masked(word.offset, word.steps[:at]) != HEADER_LENGTH_WORD
    ):
        raise CannotSay("u32", "nftables computes no offset from bytes of the packet")
    offset = word.steps[at][1]
    return "th", offset, masked(offset, word.steps[at + 1 :])


def _before_shift(values: Iterable[Interval], part: MaskedWord) -> IntervalSet:
    """Return the values of the masked word, before the shift, that are in ``values`` after it."""
    shift, most = part.shift, _ALL if part.mask else 0
    if shift <= 0:
        spans = [Interval(v.low << -shift, v.high << -shift) for v in values]
    else:
        spans = [Interval(-(-v.low >> shift), v.high >> shift) for v in values]
    possible = intersection(union(s for s in spans if s.low <= s.high), (Interval(0, most),))
    return tuple(v for v in possible if not v.is_point or not v.low & ~part.mask)


def tests_for_first(offset: int, mask: int, values: IntervalSet) -> bool:
    """Return whether only packets of IPv4 without a fragment offset have such a word in their IP header."""
    of_offset = offset == _FRAGMENT_WORD and mask & _FRAGMENT_OFFSET == _FRAGMENT_OFFSET
    return of_offset and all(v.is_point and not v.low & _FRAGMENT_OFFSET for v in values)


def excludes_later_fragments(test: Test) -> bool:
    """Return whether the test is false of every later fragment."""
    if not isinstance(test, FieldTest):
        return False
    if test.field is Field.FRAGMENT:
        return any(0 in v for v in test.values if isinstance(v, Interval)) is not test.negated
    return test.field in _OF_FIRST_FRAGMENTS
