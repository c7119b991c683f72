"""IPv6 routing: the local and main tables, source selection, and packets that are not received.

The tables are those of a namespace without policy routing, where the local table comes before the main one
(``fib6_rule_lookup``). The devices of the node have no neighbour discovery, so no solicited-node group is
joined (``addrconf_join_solict``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from backends.model.node import Address, Node
from backends.simulator.routing.path import LOOPBACK, NoRoute, Path
from backends.simulator.routing.scopes import LINK_LOCAL, MAPPED, reach_of, scope_of
from backends.simulator.routing.source_address import select_source
from translate.errors import Refusal, UnsupportedError
from translate.ir import NOWHERE, AddressType, Family, Interval, parse_address

__all__ = ["Router6"]

_TWO = 2  # a network with no more addresses has no anycast address (RFC 6164)
_LOCALHOST = Address(Family.IP6, 1, 128)
_ALL_NODES = parse_address(Family.IP6, "ff02::1")
_ALL_ROUTERS = parse_address(Family.IP6, "ff02::2")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A route. ``base`` is the first address of a network on the link that has an anycast address."""

    type: AddressType
    dev: str
    via: int | None = None
    base: int | None = None


class Router6:
    """The routing tables and address lists of a Node for IPv6; see :class:`Router` for IPv4's."""

    def __init__(self, node: Node) -> None:
        self._forwarding = node.sysctl("net.ipv6.conf.all.forwarding") != "0"
        # ipv6_link_dev_addr puts an address before earlier ones of its scope, and after wider ones.
        self._devices: dict[str, tuple[Address, ...]] = {LOOPBACK: (_LOCALHOST,)}
        for interface in node.interfaces:
            six = [a for a in interface.addresses if a.family is Family.IP6]
            six.reverse()
            self._devices[interface.name] = tuple(sorted(six, key=lambda a: -scope_of(a.value)))
        self._local: dict[int, list[_Entry]] = {}
        tables: dict[int, dict[int, list[_Entry]]] = {}
        for name, addresses in self._devices.items():
            for a in addresses:
                self._local.setdefault(a.value, []).append(_Entry(AddressType.LOCAL, name))
        for name, addresses in self._devices.items():
            for a in reversed(addresses):
                if self._forwarding and a.prefix_length < 127 and a.network.low:
                    # addrconf_join_anycast: the subnet-router anycast address
                    self._local.setdefault(a.network.low, []).append(_Entry(AddressType.ANYCAST, name))
                if name != LOOPBACK:
                    entry = _Entry(AddressType.UNICAST, name, base=_base(a.network))
                    tables.setdefault(a.network.size, {}).setdefault(a.network.low, []).append(entry)
        for r in node.routes:
            if r.family is Family.IP6:
                entry = _Entry(AddressType.UNICAST, r.dev, r.via, _base(r.dst) if r.via is None else None)
                tables.setdefault(r.dst.size, {}).setdefault(r.dst.low, []).append(entry)
        self._by_length = sorted(tables.items())

    # Tables

    def _find(self, address: int, dev: str | None = None) -> _Entry | None:
        """Look up an address; a link-local one or ::1 only in routes of ``dev`` (``rt6_need_strict``)."""
        strict = dev if address in LINK_LOCAL or address == _LOCALHOST.value else None
        for entry in self._local.get(address, ()):
            if strict in (None, entry.dev):
                return entry
        for size, entries in self._by_length:
            for entry in entries.get(address & -size, ()):
                if strict in (None, entry.dev):
                    return entry
        return None

    def address_type(self, address: int, dev: str | None = None) -> AddressType:
        """Return the type of an address on this node (``match_lookup_rt6``, ``__nft_fib6_eval_type``).

        With ``dev``, a local address counts only if it belongs to that interface.
        """
        if _multicast(address):
            return AddressType.MULTICAST
        entry = self._find(address)
        if entry is None:
            return AddressType.UNREACHABLE
        if entry.type is AddressType.LOCAL and dev is not None:
            own = any(a.value == address for a in self._devices[dev])
            return AddressType.LOCAL if own else AddressType.UNICAST
        return entry.type

    def select_address(self, dev: str, dst: int) -> int:
        """Return the source address for sending out of ``dev`` to ``dst`` (``ipv6_dev_get_saddr``)."""
        only = dst in LINK_LOCAL or dst == _LOCALHOST.value or _multicast(dst)
        names = (dev,) if only else tuple(self._devices)
        return select_source([(a, name) for name in names for a in self._devices[name]], dst, dev)

    def redirect_address(self, dev: str, dst: int) -> int:
        """Return the address that REDIRECT binds on ``dev``, or 0 (``nf_nat_redirect_ipv6``).

        The first address; for a destination of limited scope, the first address of the same scope (since
        Linux 6.1.64 and 6.7; before, always the first).
        """
        reach = reach_of(dst)
        for a in self._devices[dev]:
            if a.value not in MAPPED and (not reach or reach & reach_of(a.value)):
                return a.value
        return 0

    # Input

    def leads_back(self, src: int, dst: int, dev: str) -> bool:
        """Return whether a route to ``src`` leads out of ``dev`` (``rpfilter_lookup_reverse6``).

        Any of the routes to the longest prefix may lead out of the device (``rt6_device_match``).
        """
        if dev == LOOPBACK:
            return True
        strict = src in LINK_LOCAL
        if any(not strict or entry.dev == dev for entry in self._local.get(src, ())):
            return False
        for size, entries in self._by_length:
            there = entries.get(src & -size, [])
            if any(entry.dev == dev for entry in there):
                return True
            if there and not strict:
                return False
        return False

    def not_received(self, src: int, dst: int, dev: str) -> str | None:
        """Return the reason for which a packet is dropped before any hook (``ip6_rcv_core``), or None."""
        if _multicast(src):
            return "its source is a multicast address"
        if dev != LOOPBACK and _LOCALHOST.value in (src, dst):
            return "the loopback address came from outside"
        scope = dst >> 112 & 0xF
        if _multicast(dst) and (scope == 0 or (scope == 1 and dev != LOOPBACK)):
            return "an interface-local multicast came from outside"
        return None

    def route_input(self, src: int, dst: int, dev: str) -> Path | NoRoute:
        """Route a packet that came in on ``dev`` (``ip6_route_input``)."""
        if _multicast(dst):
            joined = dst == _ALL_NODES or (dst == _ALL_ROUTERS and self._forwarding)
            # ip6_mc_input
            return Path(type=AddressType.MULTICAST, dev=LOOPBACK) if joined else NoRoute.MARTIAN
        entry = self._find(dst, dev)
        if entry is None:
            return NoRoute.MARTIAN if dst == 0 else NoRoute.NET_UNREACHABLE  # ip6_pkt_drop
        if entry.type is not AddressType.UNICAST:
            return Path(type=entry.type, dev=LOOPBACK, source=dst)
        if not self._forwarding:
            return NoRoute.NOT_FORWARDING
        return Path(type=entry.type, dev=entry.dev, via=entry.via)

    def stays_on_link(self, src: int, dev: str, out: str) -> AddressType | None:
        """Return the reason not to forward a source (``ip6_forward``): UNICAST if it is link-local.

        None if it may be forwarded; UNSPEC if it is not a valid source. A packet that leaves on its input
        device is not checked.
        """
        if dev == out:
            return None
        if src in (0, _LOCALHOST.value) or _multicast(src):
            return AddressType.UNSPEC
        return AddressType.UNICAST if src in LINK_LOCAL else None

    # Output

    def route_output(self, dst: int, src: int = 0, *, dev: str | None = None) -> Path | NoRoute:
        """Route a packet made on the node (``ip6_route_output``); its source does not matter.

        ``dev`` is for a link-local destination only. Raises UnsupportedError for a link-local destination
        without ``dev``, which is not simulated.
        """
        if _multicast(dst):
            _refuse("ipv6-multicast", "a multicast packet made on the node")
        if dst in LINK_LOCAL and dev is None:
            _refuse("ipv6-link-local", "a packet made on the node for a link-local address")
        if dst == 0:
            return Path(type=AddressType.LOCAL, dev=LOOPBACK, source=src or _LOCALHOST.value)
        entry = self._find(dst, dev)
        if entry is None:
            return NoRoute.FAILED
        if entry.type is AddressType.UNICAST:
            source = src or self.select_address(entry.dev, dst)
            return Path(type=entry.type, dev=entry.dev, via=entry.via, source=source)
        if dst in LINK_LOCAL:
            _refuse("ipv6-link-local", "a packet of the node to its own link-local address")
        source = src or (dst if entry.type is AddressType.LOCAL else self.select_address(LOOPBACK, dst))
        return Path(type=entry.type, dev=LOOPBACK, source=source)

    def reroute(self, dst: int, src: int, dev: str | None = None) -> Path | NoRoute:
        """Route a packet, bound for ``dev``, again after NAT or a new mark (``ip6_route_me_harder``)."""
        return self.route_output(dst, src, dev=dev if dst in LINK_LOCAL else None)

    def route_reset(self, dst: int, src: int) -> Path | NoRoute:
        """Route a RST from ``src`` (``nf_send_reset6``): without a device, even for a link-local address."""
        entry = self._find(dst)
        if entry is None:
            return NoRoute.FAILED
        return Path(
            type=entry.type,
            dev=entry.dev if entry.type is AddressType.UNICAST else LOOPBACK,
            via=entry.via,
            source=src,
        )

    def route_error(self, dst: int, about: Path, address: int, dev: str) -> Path | NoRoute:
        """Route an ICMPv6 error to ``dst`` about a packet for ``address`` that came in on ``dev``.

        Its source is the packet's destination if that is an address of the node, else the device's address
        for ``dst`` (``icmp6_send``). No error is sent to an anycast address.
        """
        link = dev if dst in LINK_LOCAL else None
        entry = None if _multicast(address) else self._find(address)
        own = address if entry is not None and entry.type is not AddressType.UNICAST else 0
        back = self._find(dst, link)
        if back is not None and (back.type is AddressType.ANYCAST or back.base == dst):
            return NoRoute.FAILED  # ipv6_anycast_destination
        return self.route_output(dst, own or (self.select_address(dev, dst) if dev else 0), dev=link)


def _base(network: Interval) -> int | None:
    return network.low if network.size > _TWO else None


def _refuse(feature: str, what: str) -> NoReturn:
    raise UnsupportedError((Refusal(NOWHERE, "simulator", feature, f"{what} is not simulated"),))


def _multicast(address: int) -> bool:
    return address >> 120 == 0xFF
