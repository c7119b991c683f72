"""Facts about the node that the program needs: devices, local addresses and routes of the namespace.

The kernel still routes. These maps have facts for which a tc program has no helper: the type of an address
(``addrtype``, and whether INPUT is next), the source address of masquerading (``sources``), and the route of
a local packet whose destination has changed.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from backends.model.node import Node
from backends.model.timeouts import timeouts_of
from backends.tc_ebpf.node.direct import direct_devices
from backends.tc_ebpf.node.listings import Link, ListedRoute, Listings
from backends.tc_ebpf.node.sources import OwnAddress, select4, sources
from backends.tc_ebpf.node.waysback import ways_back
from backends.wire.checksums import CRC_TABLE
from translate.bpf import DeviceFlag, Structure, runtime_types
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["NodeFacts", "SourceChecks", "read_facts", "settings_of", "tai_lead"]

_U32: Final = struct.Struct("=I")
_TABLE_MAIN: Final = 254
_TABLE_LOCAL: Final = 255
_RTN_UNICAST: Final = 1
_RTN_LOCAL: Final = 2
_RTN_REFUSING: Final = (6, 7, 8, 9)  # blackhole, unreachable, prohibit, throw
_WITHOUT_ANYCAST: Final = 127
_MAPPED: Final = 0xFFFF
_NEAR: Final[tuple[Callable[[int], bool], ...]] = (
    lambda a: a == 1,
    lambda a: a >> 118 == 0xFE80 >> 6,
    lambda a: a >> 118 == 0xFEC0 >> 6,
    lambda a: 1 < a < 1 << 32,
)
"""Tests for IPv6 addresses: loopback, link-local, site-local, IPv4-compatible (``ipv6_addr_scope``).

In the order of ``ipv6/address.h``.
"""

Entry = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class SourceChecks:
    """The effective settings of a device for the sources of packets that it receives (IPv4)."""

    rp_filter: int = 0
    accept_local: bool = False


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Packed keys and values, by the name of their map."""

    entries: dict[str, list[Entry]]
    devices: tuple[int, ...]
    """The interfaces to attach to, with ``lo`` but without ports, whose packets appear on their master."""
    names: dict[int, str]
    """The names of all interfaces."""


def read_facts(
    node: Node,
    family: Family,
    *,
    checks: Mapping[str, SourceChecks],
    direct: bool = True,
    reverse: bool = False,
) -> NodeFacts:
    """Read devices, addresses and routes of the current network namespace.

    ``checks`` has the source checks of each device; ``node`` has conntrack's sysctls. Without ``direct``, all
    packets go through the stack. ``reverse`` adds the routes by device for ``-m rpfilter`` over IPv6. Raises
    MachineError for routes of a kind that the program does not support.
    """
    with Listings() as listings:
        links = listings.links()
        addresses = listings.addresses(family)
        routes = listings.routes(family)
        plain = listings.has_plain_rules(family)
    bridges = frozenset(link.index for link in links if _is_bridge(link, family))
    shortest = direct_devices(links, family, bridges) if direct and plain else frozenset()
    reader = _Reader(family, links, addresses, bridges, shortest, plain)
    entries = {
        "devices": list(reader.devices(checks)),
        "locals": list(reader.locals([route for route in routes if route.table == _TABLE_LOCAL])),
        "routes": list(reader.routes([route for route in routes if route.table == _TABLE_MAIN])),
        "primary": list(reader.primary()),
        "settings": [(_U32.pack(0), settings_of(node, family))],
        "crc_tables": [(_U32.pack(0), struct.pack("=256I", *CRC_TABLE))],
    }
    if reverse:
        entries["ways_back"] = list(reader.ways_back(routes))
    return NodeFacts(entries, tuple(_attached(links)), {link.index: link.name for link in links})


@dataclass(frozen=True, slots=True)
class _Reader:
    family: Family
    links: list[Link]
    addresses: list[OwnAddress]
    bridges: frozenset[int]
    direct: frozenset[int]
    plain_rules: bool

    def devices(self, checks: Mapping[str, SourceChecks]) -> Iterator[Entry]:
        for link in self.links:
            index, name = link.index, link.name
            here = [a.value for a in self.addresses if a.index == index]
            first = next(iter(here), 0)
            near: tuple[int, ...] = (0,)
            flags = DeviceFlag(0)
            if self.family is Family.IP:
                check = checks.get(name, SourceChecks())
                modes = {1: DeviceFlag.RP_STRICT, 2: DeviceFlag.RP_LOOSE}
                flags = modes.get(check.rp_filter, flags)
                if check.accept_local:
                    flags |= DeviceFlag.ACCEPT_LOCAL
                if _conf(name, "route_localnet") or _conf("all", "route_localnet"):
                    flags |= DeviceFlag.ROUTE_LOCALNET
            else:
                first = next((a for a in here if a >> 32 != _MAPPED), 0)
                near = tuple(next((a for a in here if is_near(a)), 0) for is_near in _NEAR)
            if index in self.bridges:
                flags |= DeviceFlag.BRIDGE
            if index in self.direct:
                flags |= DeviceFlag.DIRECT
            if self.plain_rules:
                flags |= DeviceFlag.PLAIN_RULES
            value = self._structure("device").pack(
                name=os.fsencode(name).ljust(16, b"\0"),
                address=first,
                near=near,
                flags=flags,
                group=link.group,
                mac=link.mac[:6].ljust(8, b"\0"),
            )
            yield _U32.pack(index), value

    def locals(self, routes: list[ListedRoute]) -> Iterator[Entry]:
        # If several devices have the same IPv4 address, __ip_dev_find finds the last one.
        own = {a.value: a.index for a in self.addresses}
        # Without routing rules, IPv4 refuses only the node's addresses as sources (fib_validate_source).
        checked_in_full = self.family is Family.IP and not self.plain_rules
        known = set()
        for route in routes:
            address, length = route.destination, route.length
            if (address, length) in known:
                continue  # a later device with the same address: the lookup of a route finds the first one
            known.add((address, length))
            is_host_address = route.type == _RTN_LOCAL and length == self.family.bits
            home = own.get(address, 0) if is_host_address else 0
            if checked_in_full and not home:
                home = route.oif or 0  # no valid source either (__fib_validate_source)
            value = self._structure("local").pack(type=route.type, oif=route.oif or 0, own=home)
            yield self._prefix(address, length), value

    def routes(self, routes: list[ListedRoute]) -> Iterator[Entry]:
        best: dict[tuple[int, int], tuple[int, bytes]] = {}
        for route in routes:
            address, length = route.destination, route.length
            oif = route.oif
            if route.type in _RTN_REFUSING:
                oif = 0
            elif route.type != _RTN_UNICAST or oif is None:
                raise MachineError("the tc program supports only unicast routes through one device")
            via = route.gateway or 0
            source = 0
            if self.family is Family.IP6:
                if route.gateway is None and length < _WITHOUT_ANYCAST:
                    source = address
            else:
                source = route.source or select4(self.addresses, oif, via or None) or 0
            known = best.get((address, length))
            if known is None or route.metric < known[0]:
                value = self._structure("route").pack(via=via, source=source, oif=oif, mtu=route.mtu)
                best[address, length] = route.metric, value
        for (address, length), (_, value) in best.items():
            yield self._prefix(address, length), value

    def primary(self) -> Iterator[Entry]:
        """Yield the entries of the trie of source addresses by device and destination (IPv4: next hop)."""
        for link in self.links:
            for address, length, source in sources(self.family, self.addresses, link.index):
                key = self._structure("source_prefix").pack(
                    length=32 + length, oif=link.index, address=self._wire(address)
                )
                yield key, source.to_bytes(self.family.bits // 8, sys.byteorder)

    def ways_back(self, routes: list[ListedRoute]) -> Iterator[Entry]:
        """Yield the entries of the trie of routes by device (IPv6)."""
        for way in ways_back(routes):
            key = self._structure("way_key").pack(
                length=32 + way.length, row=way.row, address=self._wire(way.address)
            )
            yield key, self._structure("way_back").pack(type=way.type, length=way.length)

    def _structure(self, name: str) -> Structure:
        return runtime_types(self.family).structures[name]

    def _wire(self, address: int) -> bytes:
        return address.to_bytes(self.family.bits // 8, "big")

    def _prefix(self, address: int, length: int) -> bytes:
        return self._structure("prefix").pack(length=length, address=self._wire(address))


_PORTS: Final = frozenset({"bridge", "bond", "team", "openvswitch"})
_ETHERNET: Final = (1, 772)  # ARPHRD_ETHER, ARPHRD_LOOPBACK
_IFF_UP: Final = 1


def _attached(links: list[Link]) -> Iterator[int]:
    """Yield the devices where netfilter sees packets. Raises MachineError if one has no Ethernet headers.

    The master of a port takes its packets (``rx_handler``) before IP sees them.
    """
    for link in links:
        if link.port_kind in _PORTS:
            continue
        if link.hardware in _ETHERNET:
            yield link.index
        elif link.flags & _IFF_UP:
            raise MachineError(
                f"device {link.name} carries packets without an Ethernet header, which the tc program needs"
            )


def _is_bridge(link: Link, family: Family) -> bool:
    """Return whether packets from this device have passed ``br_netfilter`` at one of its ports."""
    if link.kind != "bridge":
        return False
    tables = "iptables" if family is Family.IP else "ip6tables"
    try:
        return Path(f"/proc/sys/net/bridge/bridge-nf-call-{tables}").read_text().strip() != "0"
    except OSError:
        return False  # no br_netfilter


def tai_lead() -> int:
    """Return the lead of TAI over UTC in seconds, which is 0 until a program such as chrony sets it."""
    return round(time.clock_gettime(time.CLOCK_TAI) - time.time())


def settings_of(node: Node, family: Family) -> bytes:
    """Return the bytes of ``struct settings``."""
    # The values are those of the Node, because these sysctls do not exist in a namespace without conntrack.
    names = {
        "tcp_loose": "tcp_loose",
        "tcp_liberal": "tcp_be_liberal",
        "tcp_ignore_invalid_rst": "tcp_ignore_invalid_rst",
        "checksum": "checksum",
    }
    switches = {
        member: int(node.sysctl(f"net.netfilter.nf_conntrack_{name}") != "0")
        for member, name in names.items()
    }
    t = timeouts_of(node)
    return (
        runtime_types(family)
        .structures["settings"]
        .pack(
            **switches,
            tcp_max_retrans=t.tcp_max_retrans,
            tcp_timeout=t.tcp,
            tcp_retransmitted=t.tcp_retransmitted,
            tcp_unacknowledged=t.tcp_unacknowledged,
            udp=t.udp,
            udp_stream=t.udp_stream,
            icmp=t.icmp if family is Family.IP else t.icmpv6,
            gre=t.gre,
            gre_stream=t.gre_stream,
            generic=t.generic,
            sctp=t.sctp,
            sctp_established=t.sctp_established,
            dccp=t.dccp,
            dccp_open=t.dccp_open,
            tai_lead=tai_lead(),
        )
    )


def _conf(device: str, name: str) -> bool:
    return Path("/proc/sys/net/ipv4/conf", device, name).read_text().strip() != "0"
