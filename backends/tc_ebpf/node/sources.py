"""The node's source addresses by destination, as a table for the program to look up.

For IPv4 it is ``inet_select_addr(device, next hop, universe)``, which chooses by the network of the next hop.
For IPv6 it is ``ipv6_dev_get_saddr(device, destination)``: the rules of RFC 6724 that distinguish static
addresses. All destinations of a prefix have the same source, except longer prefixes in it, so the table is a
trie.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from translate.dataclass import dataclass
from translate.ir import Family

__all__ = ["OwnAddress", "Region", "select4", "sources"]

_Prefix = tuple[int, int]
Region = tuple[int, int, int]
"""First address and length of a prefix, and the source for destinations in it; 0 for none."""

_UNIVERSE: Final = 0
_WIDTH: Final = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAddress:
    """An address of the node; lists of these are in the kernel's order.

    ``usable``: it is neither tentative nor failed. ``aging``: it is deprecated.
    """

    index: int
    value: int
    length: int
    scope: int = _UNIVERSE
    secondary: bool = False
    usable: bool = True
    aging: bool = False


def sources(family: Family, addresses: Sequence[OwnAddress], index: int) -> list[Region]:
    """Return the source for every destination (IPv4: next hop) out of the device ``index``."""
    return _sources4(addresses, index) if family is Family.IP else _sources6(addresses, index)


def _sources4(addresses: Sequence[OwnAddress], index: int) -> list[Region]:
    default = select4(addresses, index, None)
    if default is None:
        return []
    own_addresses = [a for a in addresses if a.index == index and _usable4(a)]
    regions = [(0, 0, default)]
    for address in own_addresses:
        # In list order, not by length: an earlier, wider network comes first.
        first = next(a for a in own_addresses if a.length <= address.length and _holds(a, address.value))
        if address.length:
            network = address.value >> (32 - address.length) << (32 - address.length)
            regions.append((network, address.length, first.value))
    return regions


def select4(addresses: Sequence[OwnAddress], index: int, next_hop: int | None) -> int | None:
    """Return the source address of a device for a next hop (``inet_select_addr``).

    The device's first primary address whose network contains the next hop; or else its first primary address;
    or else the first usable address of any device.
    """
    usable = [a for a in addresses if _usable4(a)]
    own_addresses = [a for a in usable if a.index == index]
    for address in own_addresses:
        if next_hop is None or _holds(address, next_hop):
            return address.value
    if own_addresses:
        return own_addresses[0].value
    return next((a.value for a in sorted(usable, key=lambda a: a.index)), None)


def _usable4(address: OwnAddress) -> bool:
    return not address.secondary and address.scope == _UNIVERSE


def _holds(network: OwnAddress, address: int) -> bool:
    return network.value >> (32 - network.length) == address >> (32 - network.length)


def _prefix(text: str) -> _Prefix:
    network = ipaddress.IPv6Network(text)
    return int(network.network_address), network.prefixlen


_LABELS: Final = (
    (*_prefix("::1/128"), 0),
    (*_prefix("::ffff:0:0/96"), 4),
    (*_prefix("::/96"), 3),
    (*_prefix("2001::/32"), 6),
    (*_prefix("2001:10::/28"), 7),
    (*_prefix("3ffe::/16"), 12),
    (*_prefix("2002::/16"), 2),
    (*_prefix("fec0::/10"), 11),
    (*_prefix("fc00::/7"), 5),
)
"""Prefixes and their labels, the longest first (``ip6addrlbl_init_table``); other addresses have label 1."""

_SCOPES: Final = (
    (*_prefix("::/128"), -1),
    (*_prefix("::1/128"), 2),
    (*_prefix("fe80::/10"), 2),
    (*_prefix("fec0::/10"), 5),
)
"""Prefixes and their scopes (``__ipv6_addr_src_scope``); other addresses except multicast ones are global."""

_GLOBAL: Final = 14
_GROUPS: Final = _prefix("ff00::/8")
_ORCHID: Final = _prefix("2001:10::/28")


def _sources6(addresses: Sequence[OwnAddress], index: int) -> list[Region]:
    candidates = sorted((a for a in addresses if a.usable), key=lambda a: a.index)
    default, longer = _regions(
        (0, 0), sorted(_borders(candidates)), lambda dst: _select6(candidates, index, dst)
    )
    return [(0, 0, default), *longer]


def _regions(
    prefix: _Prefix, borders: Sequence[_Prefix], select: Callable[[int], int]
) -> tuple[int, list[Region]]:
    """Return the source for a prefix and for the longer prefixes in it with other sources.

    ``borders``, sorted, are prefixes in it; all destinations outside of them have the same source.
    """
    start, length = prefix
    inside = [b for b in borders if b[1] > length]
    if not inside:
        return select(start), []
    common = min(_common(inside[0][0], inside[-1][0]), *(n for _, n in inside))
    if common > length:
        # All borders are in one part. The rest is one region, represented by the other half.
        value = select(inside[0][0] ^ 1 << (_WIDTH - 1 - length))
        part = inside[0][0] >> (_WIDTH - common) << (_WIDTH - common), common
        other, longer = _regions(part, inside, select)
        return value, [(*part, other), *longer] if other != value else longer
    half = start | 1 << (_WIDTH - 1 - length)
    value, remaining = _regions((start, length + 1), [b for b in inside if b[0] < half], select)
    other, right = _regions((half, length + 1), [b for b in inside if b[0] >= half], select)
    differs = [(half, length + 1, other)] if other != value else []
    return value, [*remaining, *differs, *right]


def _select6(candidates: Iterable[OwnAddress], index: int, dst: int) -> int:
    """Return the best source address, the first of equally good ones (``ipv6_dev_get_saddr``)."""
    of_link = _scope(dst) <= 2 or _within(dst, _GROUPS)
    usable = [a for a in candidates if a.index == index] if of_link else candidates
    return max(usable, key=lambda a: _score(a, index, dst), default=_NOBODY).value


_NOBODY: Final = OwnAddress(index=0, value=0, length=0)


def _score(a: OwnAddress, index: int, dst: int) -> tuple[int, ...]:
    scope, wanted = _scope(a.value), _scope(dst)
    return (
        a.value == dst,
        -scope if scope >= wanted else scope - 128,
        not a.aging,
        a.index == index,
        _label(a.value) == _label(dst),
        _within(a.value, _ORCHID) == _within(dst, _ORCHID),
        min(_common(a.value, dst), a.length),
    )


def _borders(candidates: Sequence[OwnAddress]) -> set[_Prefix]:
    """Return the prefixes at whose borders the source of destinations may change."""
    borders = {(0, 0), _GROUPS, *((p, n) for p, n, _ in (*_LABELS, *_SCOPES))}
    borders |= {(0xFF << 120 | scope << 112 | flags << 116, 16) for scope in range(16) for flags in range(16)}
    for a in candidates:
        lengths = {_WIDTH, a.length}
        for b in candidates:
            common = _common(a.value, b.value)
            lengths |= {common, common + 1, min(common, b.length), min(common, b.length) + 1}
        borders |= {(a.value >> (_WIDTH - n) << (_WIDTH - n), n) for n in lengths if n <= _WIDTH}
    return borders


def _scope(address: int) -> int:
    if _within(address, _GROUPS):
        return address >> 112 & 15
    return next((scope for p, n, scope in _SCOPES if _within(address, (p, n))), _GLOBAL)


def _label(address: int) -> int:
    return next((label for p, n, label in _LABELS if _within(address, (p, n))), 1)


def _common(a: int, b: int) -> int:
    return _WIDTH - (a ^ b).bit_length()


def _within(address: int, prefix: _Prefix) -> bool:
    first, length = prefix
    return (address ^ first) >> (_WIDTH - length) == 0
