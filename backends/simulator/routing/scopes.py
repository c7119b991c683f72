"""Scopes of IPv6 addresses, in the two forms that the kernel uses (``__ipv6_addr_type``)."""

from __future__ import annotations

from enum import IntFlag
from typing import Final

from translate.ir import Family, Interval, parse_address

__all__ = ["LINK_LOCAL", "LINK_SCOPE", "MAPPED", "MULTICAST", "Reach", "reach_of", "scope_of"]


def _prefix(text: str, length: int) -> Interval:
    return Interval.prefix(parse_address(Family.IP6, text), length, 128)


LINK_LOCAL: Final = _prefix("fe80::", 10)
MAPPED: Final = _prefix("::ffff:0:0", 96)
MULTICAST: Final = _prefix("ff00::", 8)
_SITE_LOCAL: Final = _prefix("fec0::", 10)
_COMPATIBLE: Final = _prefix("::", 96)
_UNSPECIFIED, _LOOPBACK = 0, 1
_NODE, LINK_SCOPE, _SITE, _GLOBAL = 1, 2, 5, 14


class Reach(IntFlag):
    """The kind of an address whose scope is not global (``ipv6_addr_scope``)."""

    LOOPBACK = 0x10
    LINK = 0x20
    SITE = 0x40
    COMPATIBLE = 0x80


_REACH_OF_GROUPS: Final = {_NODE: Reach.LOOPBACK, LINK_SCOPE: Reach.LINK, _SITE: Reach.SITE}
"""The reach of a multicast address by its scope (``ipv6_addr_scope2type``)."""


def scope_of(address: int) -> int:
    """Return the scope of an address as a number, larger for a wider scope (``__ipv6_addr_src_scope``).

    That of ``::`` is -1, and a link's is :data:`LINK_SCOPE`.
    """
    if address in MULTICAST:
        return address >> 112 & 0xF
    if address == _UNSPECIFIED:
        return -1
    if address in LINK_LOCAL or address == _LOOPBACK:
        return LINK_SCOPE
    return _SITE if address in _SITE_LOCAL else _GLOBAL


def reach_of(address: int) -> Reach:
    """Return the scope flags of an address (``ipv6_addr_scope``), by which REDIRECT chooses."""
    if address in MULTICAST:
        return _REACH_OF_GROUPS.get(scope_of(address), Reach(0))
    if address in LINK_LOCAL:
        return Reach.LINK
    if address in _SITE_LOCAL:
        return Reach.SITE
    if address == _LOOPBACK:
        return Reach.LOOPBACK
    return Reach.COMPATIBLE if address in _COMPATIBLE and address != _UNSPECIFIED else Reach(0)
