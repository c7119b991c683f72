"""Prefix-preserving replacement of addresses.

Two addresses with exactly k leading bits in common have exactly k leading bits in common afterwards: a keyed
hash of the bits before each bit decides whether it is flipped (Xu, Fan, Ammar, Moon: "Prefix-preserving IP
address anonymization", 2002). So a prefix becomes a prefix of the same length, and longest-prefix matches,
membership in a network and equality of addresses are preserved.

The bits form a binary tree, in which some nodes are never flipped:

* above and inside blocks that are special to every host (loopback, link-local, multicast …), which are not
changed, except for the last 24 bits of a solicited-node group, which come from an address (RFC 4291 §2.7.1);
* above blocks whose members stay in the block: private and shared addresses, and the kinds of IPv6 addresses
by which the kernel chooses source addresses (RFC 6724);
* nodes that contain only a part of a range ``a-b``, below the first bit in which its ends differ. Subtrees
that are completely inside or outside the range still change, and the range stays a range;
* on the paths to the first and the last address of every network of an interface: these two are not addresses
of hosts, and remain the first and the last address.

A known weakness of the method: pairs of old and new addresses reveal the common prefixes of neighbouring
addresses.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

__all__ = ["Addresses", "Blocks", "Ranges", "forced_nodes", "is_well_known"]


@dataclass(frozen=True)
class Blocks:
    """Prefixes ``(value, length)`` of one family: unchanged ones, and ones whose members stay inside."""

    bits: int
    fixed: tuple[tuple[int, int], ...]
    kept: tuple[tuple[int, int], ...]


def _four(text: str, length: int) -> tuple[int, int]:
    a, b, c, d = (int(x) for x in text.split("."))
    return (a << 24 | b << 16 | c << 8 | d, length)


BLOCKS = {
    32: Blocks(
        32,
        (_four("0.0.0.0", 8), _four("127.0.0.0", 8), _four("169.254.0.0", 16), _four("224.0.0.0", 3)),
        (
            *(_four("10.0.0.0", 8), _four("100.64.0.0", 10), _four("172.16.0.0", 12)),
            _four("192.168.0.0", 16),
        ),
    ),
    128: Blocks(
        128,
        ((0, 8), (0xFE80 << 112, 64), (0xFF00 << 112, 8)),
        (
            *((0xFE80 << 112, 10), (0xFEC0 << 112, 10), (0xFC00 << 112, 7), (0xFD00 << 112, 8)),
            *((0x2000 << 112, 3), (0x2001 << 112, 32), (0x2002 << 112, 16), (0x3FFE << 112, 16)),
        ),
    ),
}
"""By address length in bits. Only the prefix fe80::/64 is kept: the rest may contain a hardware address."""

_FIXED_INSIDE = {32: BLOCKS[32].fixed, 128: ((0, 8), (0xFF00 << 112, 8))}
_SOLICITED = (0xFF02 << 112 | 0x1FF << 24, 104)
_EMBEDDING = (0xFFFF, 0x0064FF9B << 64)
"""The upper 96 bits of IPv4-mapped (RFC 4291) and IPv4-translated addresses (RFC 6052)."""


def forced_nodes(low: int, high: int, bits: int) -> set[tuple[int, int]]:
    """Return the nodes ``(length, prefix)`` that must not be flipped, so that ``low..high`` stays a range."""
    shared = bits - (low ^ high).bit_length()
    return {
        (length, end >> (bits - length))
        for end in (low, high)
        for length in range(shared, _whole(low, high, end, bits))
    }


def _whole(low: int, high: int, end: int, bits: int) -> int:
    """Return the length of the largest prefix inside a range that begins or ends at ``end``."""
    for length in range(bits - (low ^ high).bit_length(), bits):
        span = bits - length
        first = end >> span << span
        if low <= first and first + (1 << span) - 1 <= high:
            return length
    return bits


@dataclass
class Ranges:
    """The nodes that must not be flipped because of ranges, by address length in bits."""

    nodes: dict[int, set[tuple[int, int]]] = field(default_factory=lambda: {32: set(), 128: set()})

    def add(self, bits: int, low: int, high: int) -> None:
        """Ensure that the replacement of ``low..high`` is a range; does nothing for a single address."""
        if low < high:
            self.nodes[bits] |= forced_nodes(low, high, bits)

    def add_network(self, bits: int, address: int, length: int) -> None:
        """Ensure that the first and last address of a network stay its first and last."""
        span = bits - length
        if span > 1:
            first = address >> span << span
            last = first + (1 << span) - 1
            for end in (first, last):
                self.nodes[bits] |= {(n, end >> (bits - n)) for n in range(length, bits)}


class Addresses:
    """The mapping of addresses (as integers), determined by the key and the ranges.

    Without ``private``, private IPv4 addresses can become public ones.
    """

    def __init__(self, key: bytes, ranges: Ranges, *, private: bool = True) -> None:
        self._key = key
        self._ranges = ranges
        self._private = private
        self._turned: dict[tuple[int, int, int], int] = {}

    def address(self, bits: int, value: int) -> int:
        """Return the replacement of an address."""
        if bits == 128 and value >> 32 in _EMBEDDING:
            return value >> 32 << 32 | self.address(32, value & 0xFFFFFFFF)
        made = 0
        for length in range(bits):
            span = bits - length
            bit = value >> (span - 1) & 1
            made = made << 1 | (bit ^ self._turn(bits, length, value >> span))
        return made

    def prefix(self, bits: int, value: int, length: int) -> int:
        """Return the first address of the replacement of ``value``/``length``."""
        span = bits - length
        return self.address(bits, value) >> span << span

    def range(self, bits: int, low: int, high: int) -> tuple[int, int]:
        """Return the replacement of a range that was added to :class:`Ranges`."""
        span = bits - _whole(low, high, low, bits)
        first = self.address(bits, low) >> span << span
        span = bits - _whole(low, high, high, bits)
        return first, self.address(bits, high) | ((1 << span) - 1)

    def _turn(self, bits: int, length: int, prefix: int) -> int:
        node = (bits, length, prefix)
        turned = self._turned.get(node)
        if turned is None:
            turned = 0 if self._is_kept(bits, length, prefix) else self._hash(node)
            self._turned[node] = turned
        return turned

    def _hash(self, node: tuple[int, int, int]) -> int:
        bits, length, prefix = node
        message = bytes((bits, length)) + prefix.to_bytes(16, "big")
        return hashlib.blake2b(message, key=self._key, digest_size=1).digest()[0] & 1

    def _is_kept(self, bits: int, length: int, prefix: int) -> bool:
        if (length, prefix) in self._ranges.nodes[bits]:
            return True
        blocks = BLOCKS[bits]
        kept = blocks.kept if self._private or bits == 128 else ()
        return _above((*blocks.fixed, *kept), bits, length, prefix) or _fixed(bits, length, prefix)


def is_well_known(bits: int, value: int, length: int) -> bool:
    """Return whether a prefix reveals nothing: special to every host, or a whole private block."""
    blocks = BLOCKS[bits]
    all_blocks = (*blocks.fixed, *blocks.kept)
    whole = any(
        length <= n and block >> (bits - length) == value >> (bits - length) for block, n in all_blocks
    )
    return whole or _fixed(bits, length - 1, value >> (bits - length + 1))


def _fixed(bits: int, length: int, prefix: int) -> bool:
    """Return whether the bit after a prefix selects addresses that are special to every host."""
    if bits == 128 and _inside((_SOLICITED,), bits, length, prefix):
        return False
    return _inside(_FIXED_INSIDE[bits], bits, length, prefix)


def _above(blocks: Iterable[tuple[int, int]], bits: int, length: int, prefix: int) -> bool:
    return any(length < n and value >> (bits - length) == prefix for value, n in blocks)


def _inside(blocks: Iterable[tuple[int, int]], bits: int, length: int, prefix: int) -> bool:
    return any(length >= n and prefix >> (length - n) == value >> (bits - n) for value, n in blocks)
