"""Links, addresses, routes and routing rules of the current namespace, as the kernel lists them.

See rtnetlink(7), ``linux/if_link.h`` and ``linux/fib_rules.h``. pyroute2 is not used, for the reason given in
:mod:`backends.testbed.netlink`.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from backends.tc_ebpf.node.sources import OwnAddress
from backends.testbed.netlink import Netlink, attributes
from translate.ir import Family

__all__ = ["Link", "ListedRoute", "ListedRule", "Listing"]

_RTM_GETLINK, _RTM_GETADDR, _RTM_GETROUTE, _RTM_GETRULE = 18, 22, 26, 34
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO = 1, 3, 10, 18
_IFLA_INFO_KIND, _IFLA_INFO_SLAVE_KIND = 1, 4
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC, _RTA_TABLE = 1, 4, 5, 6, 7, 15
_FRA_PRIORITY, _FRA_TABLE = 6, 15
_IFA_F_SECONDARY: Final = 0x01  # of IPv4; the same bit means temporary in IPv6
_IFA_F_DADFAILED: Final = 0x08
_IFA_F_DEPRECATED: Final = 0x20
_IFA_F_TENTATIVE: Final = 0x40


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A network device. ``type`` is its ARPHRD number, ``flags`` its ``IFF_`` flags.

    ``master`` is the index of the device that it is a port of, 0 without one. ``kind`` and ``port_kind`` are
    the kinds of virtual device that it is and that it is a port of, empty if it is none.
    """

    index: int
    type: int
    flags: int
    name: str
    mac: bytes
    master: int
    kind: str
    port_kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRoute:
    """A route. ``type`` is its ``RTN_`` number; ``via`` and ``source`` are 0 if it has none.

    ``device`` is the index of its device; None without one, or with several.
    """

    type: int
    address: int
    length: int
    device: int | None
    via: int
    source: int
    metric: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRule:
    """A routing rule. ``action`` is a number of ``FR_ACT_``, ``attributes`` are kinds of ``FRA_``."""

    priority: int
    action: int
    table: int
    attributes: frozenset[int]


class Listing(Netlink):
    """Lists what the current namespace has. Methods raise OSError with the kernel's reason."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def links(self) -> list[Link]:
        """Return all devices, in the kernel's order."""
        return list(map(_link, self.dump(_RTM_GETLINK, bytes(16))))

    def addresses(self, family: Family) -> list[OwnAddress]:
        """Return the addresses of a family, in the kernel's order."""
        return [_own_address(message) for message in self._of_family(_RTM_GETADDR, 8, family)]

    def routes(self, family: Family, table: int) -> list[ListedRoute]:
        """Return the routes of a routing table, in the kernel's order."""
        listed = []
        for message in self._of_family(_RTM_GETROUTE, 12, family):
            values = attributes(message[12:])
            if (_u32(values.get(_RTA_TABLE)) or message[4]) == table:
                listed.append(_route(message, values))
        return listed

    def rules(self, family: Family) -> list[ListedRule]:
        """Return the routing rules."""
        return [_rule(message) for message in self._of_family(_RTM_GETRULE, 12, family)]

    def _of_family(self, kind: int, size: int, family: Family) -> Iterator[bytes]:
        # A kernel without the family lists those that it has (rtnl_dump_all).
        number = family.socket_family
        return (m for m in self.dump(kind, bytes((number,)).ljust(size, b"\0")) if m[0] == number)


def _link(message: bytes) -> Link:
    type_, index, flags = struct.unpack_from("=xxHiI", message)
    values = attributes(message[16:])
    info = attributes(values.get(_IFLA_LINKINFO, b""))
    return Link(
        index=index,
        type=type_,
        flags=flags,
        name=_text(values.get(_IFLA_IFNAME)),
        mac=values.get(_IFLA_ADDRESS, b""),
        master=_u32(values.get(_IFLA_MASTER)),
        kind=_text(info.get(_IFLA_INFO_KIND)),
        port_kind=_text(info.get(_IFLA_INFO_SLAVE_KIND)),
    )


def _own_address(message: bytes) -> OwnAddress:
    length, flags, scope, index = struct.unpack_from("=xBBBI", message)
    values = attributes(message[8:])
    flags = _u32(values.get(_IFA_FLAGS)) or flags
    return OwnAddress(
        index=index,
        # In IPv6 IFA_ADDRESS is the node's own address if there is no peer.
        value=int.from_bytes(values.get(_IFA_LOCAL) or values[_IFA_ADDRESS], "big"),
        length=length,
        scope=scope,
        secondary=bool(flags & _IFA_F_SECONDARY),
        usable=not flags & (_IFA_F_TENTATIVE | _IFA_F_DADFAILED),
        aging=bool(flags & _IFA_F_DEPRECATED),
    )


def _route(message: bytes, values: dict[int, bytes]) -> ListedRoute:
    device = values.get(_RTA_OIF)
    return ListedRoute(
        type=message[7],
        address=int.from_bytes(values.get(_RTA_DST, b""), "big"),
        length=message[1],
        device=None if device is None else _u32(device),
        via=int.from_bytes(values.get(_RTA_GATEWAY, b""), "big"),
        source=int.from_bytes(values.get(_RTA_PREFSRC, b""), "big"),
        metric=_u32(values.get(_RTA_PRIORITY)),
    )


def _rule(message: bytes) -> ListedRule:
    values = attributes(message[12:])
    return ListedRule(
        priority=_u32(values.get(_FRA_PRIORITY)),
        action=message[7],
        table=_u32(values.get(_FRA_TABLE)) or message[4],
        attributes=frozenset(values),
    )


def _u32(value: bytes | None) -> int:
    return 0 if value is None else int.from_bytes(value[:4], sys.byteorder)


def _text(value: bytes | None) -> str:
    return "" if value is None else value.rstrip(b"\0").decode(errors="surrogateescape")
