"""IPv6 routing: rules and tables, source selection, and packets that are not received.

The rules are searched in order, by default for the local table and then for the main one
(``fib6_rule_lookup``). The devices of the node have no neighbour discovery, so no solicited-node group is
joined (``addrconf_join_solict``).
"""

from __future__ import annotations

import functools
from typing import NoReturn

from backends.model.node import Address, Node
from backends.model.routes import LOCAL, MAIN, RoutingRule
from backends.simulator.routing.path import LOOPBACK, NoRoute, Path
from backends.simulator.routing.rules import LookupKey, RoutingRules
from backends.simulator.routing.scopes import LINK_LOCAL, LINK_SCOPE, MAPPED, reach_of, scope_of
from backends.simulator.routing.source_address import select_source
from translate.dataclass import dataclass
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
    length: int = 128


class _Table:
    """A routing table, with the routes to each prefix in the order in which they were added."""

    def __init__(self, routes: list[tuple[Interval, _Entry]]) -> None:
        lengths: dict[int, dict[int, list[_Entry]]] = {}
        for dst, entry in routes:
            lengths.setdefault(dst.size, {}).setdefault(dst.low, []).append(entry)
        self._by_length = sorted(lengths.items())

    def find(self, address: int, *, strict: str | None, wanted: str = "") -> _Entry | None:
        """Return the first route with the longest prefix, only of the device ``strict`` if it is given.

        A route out of the device ``wanted`` comes before the others of that prefix (``rt6_device_match``).
        """
        for size, entries in self._by_length:
            there = entries.get(address & -size)
            if there is None:
                continue
            if strict is not None:
                there = [entry for entry in there if entry.dev == strict]
            if there:
                return next((entry for entry in there if wanted and entry.dev == wanted), there[0])
        return None


class Router6:
    """The routing tables and address lists of a Node for IPv6; see :class:`Router` for IPv4's."""

    def __init__(self, node: Node) -> None:
        self._forwarding = node.sysctl("net.ipv6.conf.all.forwarding") != "0"
        self.group_of = functools.cache(node.group_of)
        # ipv6_link_dev_addr puts an address before earlier ones of its scope, and after wider ones.
        self._devices: dict[str, tuple[Address, ...]] = {LOOPBACK: (_LOCALHOST,)}
        for interface in node.interfaces:
            six = [a for a in interface.addresses if a.family is Family.IP6]
            six.reverse()
            self._devices[interface.name] = tuple(sorted(six, key=lambda a: -scope_of(a.value)))
        tables: dict[int, list[tuple[Interval, _Entry]]] = {LOCAL: [], MAIN: []}
        for name, addresses in self._devices.items():
            for a in addresses:
                tables[LOCAL].append((Interval.point(a.value), _Entry(AddressType.LOCAL, name)))
        for name, addresses in self._devices.items():
            for a in reversed(addresses):
                if self._forwarding and a.prefix_length < 127 and a.network.low:
                    # addrconf_join_anycast: the subnet-router anycast address
                    anycast = _Entry(AddressType.ANYCAST, name)
                    tables[LOCAL].append((Interval.point(a.network.low), anycast))
                if name != LOOPBACK:
                    base, length = _base(a.network), a.prefix_length
                    entry = _Entry(AddressType.UNICAST, name, base=base, length=length)
                    tables[MAIN].append((a.network, entry))
        for r in node.routes:
            if r.family is Family.IP6:
                base = _base(r.dst) if r.via is None and r.type is AddressType.UNICAST else None
                entry = _Entry(r.type, r.dev, r.via, base, 129 - r.dst.size.bit_length())
                tables.setdefault(r.table, []).append((r.dst, entry))
        self._tables = {number: _Table(routes) for number, routes in tables.items()}
        self._rules = RoutingRules(node.rules_of(Family.IP6))
        self._own_rules = node.has_own_rules(Family.IP6)
        self.reflects_mark = node.sysctls.get("net.ipv6.fwmark_reflect", "0") != "0"

    # Tables

    def _lookup(self, key: LookupKey, *, strict: str | None = None, wanted: str = "") -> _Entry | NoRoute:
        """Look up a route; for a link-local address or ::1, only routes of the device ``strict`` count.

        ``rt6_need_strict`` of the kernel decides which addresses these are.
        """
        return self._search(key, strict=strict, wanted=wanted)[0]

    def _search(
        self, key: LookupKey, *, strict: str | None = None, wanted: str = ""
    ) -> tuple[_Entry | NoRoute, RoutingRule | None]:
        if key.dst not in LINK_LOCAL and key.dst != _LOCALHOST.value:
            strict = None

        def find(number: int) -> _Entry | None:
            table = self._tables.get(number)
            return None if table is None else table.find(key.dst, strict=strict, wanted=wanted)

        return self._rules.search(key, find)

    def _search_output(
        self, dst: int, src: int, dev: str | None, mark: int
    ) -> tuple[_Entry | NoRoute, RoutingRule | None]:
        """Look up a route for a new packet (``ip6_dst_lookup_tail``).

        If a packet without a source address has no route, a source is chosen, and the rules are searched
        again.
        """
        key = LookupKey(dst, src or None, oif=dev or "", mark=mark)
        first = self._search(key, strict=dev)
        if src or not isinstance(first[0], NoRoute):
            return first
        chosen = self.select_address(dev or LOOPBACK, dst)
        return self._search(key._replace(src=chosen), strict=dev) if chosen else first

    def deciding_rule(self, dst: int, src: int, mark: int, iif: str = LOOPBACK) -> RoutingRule | None:
        """Return the rule that selects a packet's route; None if none does, or if all are default rules."""
        if not self._own_rules:
            return None
        if iif == LOOPBACK:
            return self._search_output(dst, src, None, mark)[1]
        return self._search(LookupKey(dst, src or None, iif, mark=mark), strict=iif)[1]

    def address_type(self, address: int, dev: str | None = None) -> AddressType:
        """Return the type of an address on this node (``match_lookup_rt6``, ``__nft_fib6_eval_type``).

        With ``dev``, a local address counts only if it belongs to that interface.
        """
        if _multicast(address):
            return AddressType.MULTICAST
        entry = self._lookup(LookupKey(address, oif=dev or ""))
        if isinstance(entry, NoRoute):
            return AddressType.UNREACHABLE
        if entry.type is AddressType.LOCAL and dev is not None:
            own = any(a.value == address for a in self._devices[dev])
            return AddressType.LOCAL if own else AddressType.UNICAST
        return entry.type

    def select_address(self, dev: str, dst: int) -> int:
        """Return the source address for sending out of ``dev`` to ``dst`` (``ipv6_dev_get_saddr``)."""
        only = _multicast(dst) or scope_of(dst) <= LINK_SCOPE
        names = (dev,) if only else tuple(self._devices)
        return select_source([(a, name) for name in names for a in self._devices[name]], dst, dev)

    def redirect_address(self, dev: str, dst: int) -> int:
        """Return the address that REDIRECT binds on ``dev``, or 0 (``nf_nat_redirect_ipv6``).

        It is the first address of the device. Since Linux 6.1.64 and 6.7, it is the first address of the same
        scope for a destination of limited scope.
        """
        reach = reach_of(dst)
        for a in self._devices[dev]:
            if a.value not in MAPPED and (not reach or reach & reach_of(a.value)):
                return a.value
        return 0

    # Input

    def leads_back(self, src: int, dst: int, dev: str, mark: int = 0, *, loose: bool = False) -> bool:
        """Return whether a route to ``src`` leads out of ``dev`` (``rpfilter_lookup_reverse6``).

        Any of the routes to the longest prefix may lead out of the device (``rt6_device_match``). With
        ``loose``, the first one may lead out of any device, unless the source is link-local. ``mark`` is the
        packet's with ``--validmark``, otherwise 0.
        """
        if dev == LOOPBACK:
            return True
        own = None if _multicast(dst) or dst == 0 else dst
        bound = "" if loose and src not in LINK_LOCAL else dev
        entry = self._lookup(LookupKey(src, own, oif=bound, mark=mark), strict=dev, wanted=bound)
        if not isinstance(entry, _Entry) or entry.type is not AddressType.UNICAST:
            return False
        return loose or entry.dev == dev

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

    def route_input(self, src: int, dst: int, dev: str, mark: int = 0) -> Path | NoRoute:
        """Route a packet that came in on ``dev`` with a mark (``ip6_route_input``)."""
        if _multicast(dst):
            joined = dst == _ALL_NODES or (dst == _ALL_ROUTERS and self._forwarding)
            # ip6_mc_input
            return Path(type=AddressType.MULTICAST, dev=LOOPBACK) if joined else NoRoute.MARTIAN
        entry = self._lookup(LookupKey(dst, src, dev, mark=mark), strict=dev)
        if isinstance(entry, NoRoute):
            return NoRoute.MARTIAN if dst == 0 and entry is NoRoute.NET_UNREACHABLE else entry  # ip6_pkt_drop
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

    def route_output(
        self, dst: int, src: int = 0, *, dev: str | None = None, mark: int = 0
    ) -> Path | NoRoute:
        """Route a packet made on the node (``ip6_route_output``); only routing rules test its source.

        ``dev`` is for a link-local destination only. Raises UnsupportedError for a link-local destination
        without ``dev``, which is not simulated.
        """
        if dst == 0:  # sockets take :: for ::1 (rawv6_sendmsg)
            return Path(type=AddressType.LOCAL, dev=LOOPBACK, source=src or _LOCALHOST.value)
        return self._route_output(dst, src, dev, mark)

    def _route_output(self, dst: int, src: int, dev: str | None, mark: int) -> Path | NoRoute:
        if _multicast(dst):
            _refuse("ipv6-multicast", "a multicast packet made on the node")
        if dst in LINK_LOCAL and dev is None:
            _refuse("ipv6-link-local", "a packet made on the node for a link-local address")
        entry = self._search_output(dst, src, dev, mark)[0]
        if isinstance(entry, NoRoute):
            return NoRoute.FAILED
        if entry.type is AddressType.UNICAST:
            source = src or self.select_address(entry.dev, dst)
            return Path(type=entry.type, dev=entry.dev, via=entry.via, source=source)
        if dst in LINK_LOCAL:
            _refuse("ipv6-link-local", "a packet of the node to its own link-local address")
        source = src or (dst if entry.type is AddressType.LOCAL else self.select_address(LOOPBACK, dst))
        return Path(type=entry.type, dev=LOOPBACK, source=source)

    def reroute(self, dst: int, src: int, dev: str | None = None, mark: int = 0) -> Path | NoRoute:
        """Route a packet, bound for ``dev``, again after NAT or a new mark (``ip6_route_me_harder``)."""
        return self._route_output(dst, src, dev if dst in LINK_LOCAL else None, mark)

    def source_for_rerouting(self, src: int) -> int:
        """Return the source with which a packet is routed again: always its own."""
        return src

    def route_reset(self, dst: int, src: int, mark: int = 0) -> Path | NoRoute:
        """Route a RST from ``src`` (``nf_send_reset6``): without a device, even for a link-local address."""
        entry = self._lookup(LookupKey(dst, src, mark=mark))
        if isinstance(entry, NoRoute):
            return NoRoute.FAILED
        return Path(
            type=entry.type,
            dev=entry.dev if entry.type is AddressType.UNICAST else LOOPBACK,
            via=entry.via,
            source=src,
        )

    def route_error(self, dst: int, about: Path, address: int, dev: str, mark: int = 0) -> Path | NoRoute:
        """Route an ICMPv6 error to ``dst`` about a packet for ``address`` that came in on ``dev``.

        No error is sent to an anycast address.
        """
        link = dev if dst in LINK_LOCAL else None
        source = self.source_of_error(dst, about, address, dev)
        way_back = self._lookup(LookupKey(dst, source or None, mark=mark), strict=link)
        if isinstance(way_back, _Entry) and (way_back.type is AddressType.ANYCAST or way_back.base == dst):
            return NoRoute.FAILED  # ipv6_anycast_destination
        return self.route_output(dst, source, dev=link, mark=mark)

    def source_of_error(self, dst: int, about: Path, address: int, dev: str) -> int:
        """Return the source of an ICMPv6 error (``icmp6_send``).

        It is the packet's destination if that is an address of the node, else the device's address for
        ``dst``.
        """
        if self._tables[LOCAL].find(address, strict=None) is not None:
            return address
        return self.select_address(dev, dst) if dev else 0


def _base(network: Interval) -> int | None:
    return network.low if network.size > _TWO else None


def _refuse(feature: str, what: str) -> NoReturn:
    raise UnsupportedError((Refusal(NOWHERE, "simulator", feature, f"{what} is not simulated"),))


def _multicast(address: int) -> bool:
    return address >> 120 == 0xFF
