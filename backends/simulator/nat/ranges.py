"""Ranges of addresses and ports of a NAT rule, and the choice of one of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from backends.model.packet import Port, Tuple
from backends.simulator.nat.hashing import jhash2, reciprocal_scale
from backends.simulator.trace import Manip
from translate.ir import Family, Interval, NatPorts

__all__ = ["NatRange", "shifted_port", "with_address"]


class NatRange(NamedTuple):
    """The addresses (None: any) and ports that NAT maps to (``struct nf_nat_range2``)."""

    addresses: Interval | None
    ports: NatPorts

    @property
    def random(self) -> bool:
        """True if a random port is requested (``NF_NAT_RANGE_PROTO_RANDOM_ALL``)."""
        return self.ports.random or self.ports.fully_random


def shifted_port(port: Port, ports: Interval, base: int, taken: Iterable[Port]) -> Port | None:
    """Return the first free port of a range, starting as far into it as ``port`` is above ``base``.

    The search wraps around. If all ports are in use, the result is the last one tried; in a range so large
    that the kernel would start again at another port, it is None.
    """
    if not isinstance(port, int):
        return None
    used = set(taken)
    candidate = ports.low
    for i in range(min(ports.size, _ATTEMPTS)):
        candidate = ports.low + (port - base + i) % 65536 % ports.size
        if candidate not in used:
            return candidate
    return candidate if ports.size <= _ATTEMPTS else None


_ATTEMPTS: Final = 128
"""The number of ports tried in a row (``NF_NAT_MAX_ATTEMPTS``)."""


def with_address(t: Tuple, wanted: NatRange, manip: Manip, family: Family, *, zone: int) -> Tuple:
    """Return a tuple with an address of the range, chosen by a hash (``find_best_ips_proto``).

    ``zone`` is the number of the connection's zone, even if it is that of one direction only.
    """
    if wanted.addresses is None:
        return t
    address = wanted.addresses.low
    if not wanted.addresses.is_point:
        seed = None if wanted.ports.persistent else zone
        address = _hashed(t, wanted.addresses, manip, family, zone=seed)
    if manip is Manip.SOURCE:
        return Tuple(address, t.dst, t.proto, t.sport, t.dport)
    return Tuple(t.src, address, t.proto, t.sport, t.dport)


def _hashed(t: Tuple, addresses: Interval, manip: Manip, family: Family, *, zone: int | None) -> int:
    """Choose an address 32 bits at a time, as the kernel does, by a hash over all of ``nf_inet_addr``.

    The hash is over the source alone if the range is persistent (``zone`` is None). Otherwise it also depends
    on the zone and on the last word of the destination, and after each word it is changed: by a word of the
    destination, or by the chosen word if the destination is what the binding changes.
    """
    words = family.bits // 32
    source, destination = _words(t.src, words), _words(t.dst, words)
    low, high = _big_words(addresses.low, words), _big_words(addresses.high, words)
    drawn = jhash2((*source, *[0] * (4 - words)), 0 if zone is None else destination[-1] ^ zone)
    address, whole = 0, False
    for i in range(words):
        least, size = (0, _ALL) if whole else (low[i], (high[i] - low[i] + 1) & _ALL)
        word = (least + reciprocal_scale(drawn, size)) & _ALL
        whole = whole or word != high[i]
        address = address << 32 | word
        if zone is not None:
            drawn ^= destination[i] if manip is Manip.SOURCE else _as_stored(word)
    return address


_ALL: Final = 0xFFFFFFFF


def _big_words(address: int, count: int) -> list[int]:
    return [address >> 32 * (count - 1 - i) & _ALL for i in range(count)]


def _words(address: int, count: int) -> list[int]:
    """Return an address as 32-bit words in the byte order of a little-endian machine."""
    return [_as_stored(word) for word in _big_words(address, count)]


def _as_stored(word: int) -> int:
    return int.from_bytes(word.to_bytes(4, "big"), "little")
