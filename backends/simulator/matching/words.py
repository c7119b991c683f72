"""``-m u32``: tests of words of a packet; some bits of a word may be unknown (``u32_match_it``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.contents import Contents, contents
from backends.simulator.matching.undecided import Undecided
from translate.ir import Interval, Word, WordOperator, WordTest, words_text

__all__ = ["words_hold"]

_BYTES: Final = 4
_WORD: Final = 0xFFFFFFFF


def words_hold(test: WordTest, skb: Skb) -> bool:
    """Return whether a packet passes a test. Raises Undecided if that depends on unknown bytes."""
    packet = contents(skb)
    results = [_holds(word, packet) for word in test.words]
    if False in results:
        return test.negated
    if None in results:
        raise Undecided(f"the test {words_text(test.words)} reads bytes that the kernel chooses")
    return not test.negated


def _holds(word: Word, packet: Contents) -> bool | None:
    """Return whether a word has one of its values; None if unknown bits decide."""
    base = 0
    word_read = _read(packet, word.offset)
    for operator, number in word.steps:
        if word_read is None:
            return False
        value, unknown = word_read
        match operator:
            case WordOperator.AND:
                word_read = value & number, unknown & number
            case WordOperator.LEFT:
                word_read = value << number & _WORD, unknown << number & _WORD
            case WordOperator.RIGHT:
                word_read = value >> number, unknown >> number
            case WordOperator.AT:
                if unknown:
                    return None
                base += value
                word_read = _read(packet, base + number) if base <= _WORD else None
    return False if word_read is None else _among(*word_read, word.values)


def _read(packet: Contents, at: int) -> tuple[int, int] | None:
    """Return a word with 0 for its unknown bits, and the mask of these; None beyond the packet's end."""
    end = at + _BYTES
    if end > len(packet.data):
        return None
    known = int.from_bytes(packet.known[at:end], "big")
    return int.from_bytes(packet.data[at:end], "big") & known, known ^ _WORD


def _among(value: int, unknown: int, values: Iterable[Interval]) -> bool | None:
    """Return whether a value is in ``values`` whatever its unknown bits are."""
    lowest, highest = value, value | unknown
    reached = [v for v in values if v.low <= highest and lowest <= v.high]
    if any(v.low <= lowest and highest <= v.high for v in reached):
        return True
    return None if reached else False
