"""Packets whose payload has the bytes that a test of words compares, or all but one bit of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from backends.model.packet import Packet
from harness.corpus.formats.headers import with_header
from translate.ir import Family, Field, Protocol, Word, WordOperator, WordTest, masked

__all__ = ["with_lengths", "with_payloads"]

_BEHIND: Final = {Family.IP: 28, Family.IP6: 48}
"""The offset of the payload of UDP from the start of the IP header."""
_SIZE: Final = 4
_TAIL: Final = 8
"""Zeros behind the last word."""
_BITS: Final = 32


def with_payloads(packet: Packet, test: WordTest) -> Iterator[Packet]:
    """Yield packets of UDP with the tested words in their payload, whole and with each bit changed."""
    start = _BEHIND[packet.family]
    if packet.proto != Protocol.UDP or any(_value(word) is None for word in test.words):
        return
    places = [word.offset - start for word in test.words]
    if min(places) < 0:
        return
    data = bytearray(max(places) + _SIZE + _TAIL)
    for word, place in zip(test.words, places, strict=True):
        old = int.from_bytes(data[place : place + _SIZE], "big")
        data[place : place + _SIZE] = (old | (_value(word) or 0)).to_bytes(_SIZE, "big")
    yield replace(packet, payload=bytes(data))
    for place, bit in product(dict.fromkeys(places), range(_BITS)):
        changed = bytearray(data)
        changed[place + _SIZE - 1 - bit // 8] ^= 1 << bit % 8
        yield replace(packet, payload=bytes(changed))


def _value(word: Word) -> int | None:
    """Return the value of a word that is compared with one constant under a mask, or None."""
    moved = any(operator is WordOperator.AT for operator, _ in word.steps)
    if moved or masked(word.offset, word.steps).shift or len(word.values) != 1 or not word.values[0].is_point:
        return None
    return word.values[0].low


def with_lengths(packet: Packet, entry: str | None) -> Iterator[Packet]:
    """Yield packets with and without zeros among the bytes of their TOS and length, the first of a header."""
    for tos, length in product((0, 0x04, 0x80), (0x0101, 0x0180, 0x0100, 0xF1, 0x0201)):
        changed = with_header(packet, Field.TOS, tos, entry, forwarded=False)
        if changed is not None:
            longer = with_header(changed, Field.LENGTH, length, entry, forwarded=False)
            if longer is not None:
                yield longer
