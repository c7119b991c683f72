"""Prefixes of IPv6 addresses that SNPT and DNPT replace (``ip6t_npt_map_pfx``)."""

from __future__ import annotations

from typing import Final

from backends.model.packet import Packet
from backends.simulator.matching.undecided import Undecided
from translate.dataclass import replace
from translate.ir import TranslatePrefix

__all__ = ["translated", "with_prefix"]

_BITS: Final = 128
_WORD: Final = 0xFFFF
_SHORT: Final = 48
"""The longest prefix whose change is compensated in the word after the first 48 bits."""


def with_prefix(packet: Packet, action: TranslatePrefix) -> Packet:
    """Return the packet as the target changes it, with the packet that it quotes."""
    address = _changed(packet.src if action.source else packet.dst, action)
    quoted = packet.quoted
    if quoted is not None:
        # the quoted packet went the other way
        inner = quoted.dst if action.source else quoted.src
        if inner >> _BITS - action.old_bits == action.old >> _BITS - action.old_bits:
            inner = _changed(inner, action)
            quoted = replace(quoted, dst=inner) if action.source else replace(quoted, src=inner)
    if action.source:
        return replace(packet, src=address, quoted=quoted)
    return replace(packet, dst=address, quoted=quoted)


def _changed(address: int, action: TranslatePrefix) -> int:
    changed = translated(address, action)
    if changed is None:
        raise Undecided("no word of the address can compensate the new prefix: the kernel drops the packet")
    return changed


def translated(address: int, action: TranslatePrefix) -> int | None:
    """Return the address with the new prefix; None if every word that could be adjusted is 0xffff."""
    host = (1 << _BITS - action.bits) - 1
    address = address & host | action.new & ~host
    places = [3] if action.bits <= _SHORT else [4, 5, 6, 7]
    for place in places:
        shift = _BITS - 16 * (place + 1)
        word = address >> shift & _WORD
        if word == _WORD and action.bits > _SHORT:
            continue
        word = _sum(word + _sum(_words(action.old) - _words(action.new) % _WORD + _WORD))
        return address & ~(_WORD << shift) | (0 if word == _WORD else word) << shift
    return None


def _words(address: int) -> int:
    return sum(address >> 16 * n & _WORD for n in range(8))


def _sum(number: int) -> int:
    """Return a sum of 16 bits with its carries added (RFC 1071)."""
    while number > _WORD:
        number = (number & _WORD) + (number >> 16)
    return number
