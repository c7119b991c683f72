"""The links, addresses, routes and routing rules of the current network namespace, as the kernel lists them.

They are in the order of the kernel's dumps. See rtnetlink(7), ``linux/if_link.h``, ``linux/fib_rules.h``.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

from backends.tc_ebpf.node.sources import OwnAddress
from backends.testbed.netlink import Netlink, attributes
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["Link", "ListedRoute", "Listings"]

_RTM_GETLINK, _RTM_GETADDR, _RTM_GETROUTE, _RTM_GETRULE = 18, 22, 26, 34
_LINK: Final = struct.Struct("=BxHiII")  # struct ifinfomsg
_ADDRESS: Final = struct.Struct("=BBBBi")  # struct ifaddrmsg
_ROUTE: Final = struct.Struct("=BBBBBBBBI")  # struct rtmsg and struct fib_rule_hdr
_U32: Final = struct.Struct("=I")

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MASTER, _IFLA_LINKINFO, _IFLA_GROUP = 1, 3, 10, 18, 27
_IFLA_INFO_KIND, _IFLA_INFO_SLAVE_KIND = 1, 4
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_IFA_F_SECONDARY: Final = 0x01  # of IPv4; the same bit means temporary in IPv6
_IFA_F_DADFAILED: Final = 0x08
_IFA_F_DEPRECATED: Final = 0x20
_IFA_F_TENTATIVE: Final = 0x40
_RTA_DST, _RTA_OIF, _RTA_GATEWAY, _RTA_PRIORITY, _RTA_PREFSRC, _RTA_METRICS, _RTA_TABLE = 1, 4, 5, 6, 7, 8, 15
_RTAX_MTU: Final = 2
_RTM_F_CLONED: Final = 0x200
_FRA_PRIORITY, _FRA_SUPPRESS_PREFIXLEN, _FRA_TABLE, _FRA_PROTOCOL = 6, 14, 15, 21
_OF_EVERY_RULE: Final = {_FRA_PRIORITY, _FRA_SUPPRESS_PREFIXLEN, _FRA_TABLE, _FRA_PROTOCOL}
_FR_ACT_TO_TBL: Final = 1
_FIB_RULE_INVERT: Final = 2
_NOT_SUPPRESSED: Final = 0xFFFFFFFF
_INITIAL_RULES: Final = ((0, 255), (32766, 254), (32767, 253))
"""Preferences and tables of the initial rules of a namespace: local, main, and in IPv4 default."""
_TABLE_LOCAL: Final = 255
_RTN_LOCAL: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A device. ``hardware`` is its ``ARPHRD_`` type and ``master`` the number of its master, or 0.

    ``kind`` is what kind of virtual device it is, and ``port_kind`` the kind of its master; empty for others.
    """

    index: int
    name: str
    hardware: int
    flags: int
    mac: bytes
    group: int
    master: int
    kind: str
    port_kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRoute:
    """A route of one table. ``type`` is a number of ``enum rt_type_t``; ``length`` is that of the prefix.

    What a route lacks is None: a route through several devices has no ``oif``. ``mtu`` is 0 if the route has
    none of its own. ``cached`` routes are to single addresses, with an MTU or a gateway that an ICMP message
    has told (``RTM_F_CLONED``).
    """

    table: int
    type: int
    destination: int
    length: int
    oif: int | None
    gateway: int | None
    source: int | None
    metric: int
    mtu: int
    cached: bool = False


class Listings(Netlink):
    """Lists what is in the current network namespace. Methods raise MachineError with the kernel's reason."""

    def __init__(self) -> None:
        super().__init__(socket.NETLINK_ROUTE)

    def links(self) -> list[Link]:
        """Return all devices."""
        links = []
        for message in self._dumped("devices", _RTM_GETLINK, _LINK.pack(socket.AF_UNSPEC, 0, 0, 0, 0)):
            _, hardware, index, flags, _ = _LINK.unpack_from(message)
            values = attributes(message[_LINK.size :])
            info = attributes(values.get(_IFLA_LINKINFO, b""))
            links.append(
                Link(
                    index=index,
                    name=_text(values[_IFLA_IFNAME]),
                    hardware=hardware,
                    flags=flags,
                    mac=values.get(_IFLA_ADDRESS, b""),
                    group=_number(values, _IFLA_GROUP) or 0,
                    master=_number(values, _IFLA_MASTER) or 0,
                    kind=_text(info.get(_IFLA_INFO_KIND, b"")),
                    port_kind=_text(info.get(_IFLA_INFO_SLAVE_KIND, b"")),
                )
            )
        return links

    def addresses(self, family: Family) -> list[OwnAddress]:
        """Return the addresses of one family."""
        addresses = []
        for message in self._of_family("addresses", _RTM_GETADDR, family, _ADDRESS.size):
            _, length, flags, scope, index = _ADDRESS.unpack_from(message)
            values = attributes(message[_ADDRESS.size :])
            flags = _number(values, _IFA_FLAGS) or flags
            # In IPv6 IFA_ADDRESS is the node's own address if there is no peer.
            value = values.get(_IFA_LOCAL) or values[_IFA_ADDRESS]
            addresses.append(
                OwnAddress(
                    index=index,
                    value=int.from_bytes(value, "big"),
                    length=length,
                    scope=scope,
                    secondary=bool(flags & _IFA_F_SECONDARY),
                    usable=not flags & (_IFA_F_TENTATIVE | _IFA_F_DADFAILED),
                    aging=bool(flags & _IFA_F_DEPRECATED),
                )
            )
        return addresses

    def routes(self, family: Family) -> list[ListedRoute]:
        """Return the routes of one family, in all tables."""
        routes = []
        for message in self._of_family("routes", _RTM_GETROUTE, family, _ROUTE.size):
            _, length, _, _, table, _, _, type_, flags = _ROUTE.unpack_from(message)
            values = attributes(message[_ROUTE.size :])
            routes.append(
                ListedRoute(
                    table=_number(values, _RTA_TABLE) or table,
                    type=type_,
                    destination=int.from_bytes(values.get(_RTA_DST, b""), "big"),
                    length=length,
                    oif=_number(values, _RTA_OIF),
                    gateway=_address(values, _RTA_GATEWAY),
                    source=_address(values, _RTA_PREFSRC),
                    metric=_number(values, _RTA_PRIORITY) or 0,
                    mtu=_number(attributes(values.get(_RTA_METRICS, b"")), _RTAX_MTU) or 0,
                    cached=bool(flags & _RTM_F_CLONED),
                )
            )
        return routes

    def has_plain_rules(self, family: Family) -> bool:
        """Return whether there are no routing rules but the initial ones."""
        return all(place in _INITIAL_RULES for place in self._rules(family))

    def routes_as_a_new_namespace(self, family: Family) -> bool:
        """Return whether all initial rules are the only ones, and only the local table delivers packets."""
        rules = _INITIAL_RULES if family is Family.IP else _INITIAL_RULES[:-1]
        return tuple(self._rules(family)) == rules and not any(
            route.type == _RTN_LOCAL and route.table != _TABLE_LOCAL for route in self.routes(family)
        )

    def _rules(self, family: Family) -> Iterator[tuple[int, int] | None]:
        """Yield the preference and table of each routing rule, None for one that is not for all packets."""
        yield from map(_rule_place, self._of_family("routing rules", _RTM_GETRULE, family, _ROUTE.size))

    def _of_family(self, what: str, kind: int, family: Family, size: int) -> Iterator[bytes]:
        # Without a handler for this family, the kernel lists all of them (rtnetlink_rcv_msg).
        number = family.socket_family
        messages = self._dumped(what, kind, bytes((number,)).ljust(size, b"\0"))
        return (message for message in messages if message[0] == number)

    def _dumped(self, what: str, kind: int, body: bytes) -> list[bytes]:
        try:
            return self.dump(kind, body)
        except OSError as e:
            raise MachineError(f"cannot list the {what}: {e.strerror}") from e


def _rule_place(message: bytes) -> tuple[int, int] | None:
    _, _, _, tos, table, _, _, action, flags = _ROUTE.unpack_from(message)
    values = attributes(message[_ROUTE.size :])
    if action != _FR_ACT_TO_TBL or tos or flags & _FIB_RULE_INVERT or not values.keys() <= _OF_EVERY_RULE:
        return None
    if _number(values, _FRA_SUPPRESS_PREFIXLEN) not in (None, _NOT_SUPPRESSED):
        return None
    return _number(values, _FRA_PRIORITY) or 0, _number(values, _FRA_TABLE) or table


def _number(values: dict[int, bytes], kind: int) -> int | None:
    value = values.get(kind)
    return None if value is None else int(_U32.unpack(value)[0])


def _address(values: dict[int, bytes], kind: int) -> int | None:
    value = values.get(kind)
    return None if value is None else int.from_bytes(value, "big")


def _text(value: bytes) -> str:
    return os.fsdecode(value.rstrip(b"\0"))
