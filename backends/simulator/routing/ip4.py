"""IPv4 routing: rules and tables, source validation, source selection.

A namespace that has only the default rules searches local and main as one trie (``fib_lookup``): the longest
prefix wins, then local before main, then the route that was added first. Any other rule separates the two
(``fib_unmerge``), and the rules are then searched in their order.
"""

from __future__ import annotations

import functools

from backends.model.node import Address, Node
from backends.model.routes import DEFAULT, LOCAL, MAIN, RoutingRule
from backends.simulator.routing.path import LOOPBACK, NoRoute, Path
from backends.simulator.routing.rules import LookupKey, RoutingRules, refusal_of
from backends.simulator.routing.tables4 import (
    Device,
    Entry,
    Table,
    connected_entries,
    local_entries,
    primary_addresses,
)
from translate.ir import AddressType, Family, Interval

__all__ = ["Router"]

_LOCALHOST = Address(Family.IP, 0x7F000001, 8)
_BROADCAST = 0xFFFFFFFF
_MOST_ROUTED = 1 << 16
_LINK_GROUPS = 0xE00000  # 224.0.0.0/24
_ALL_HOSTS = 0xE0000001


class Router:
    """The routing tables and address lists of a Node for IPv4; see :class:`Router6` for IPv6's."""

    def __init__(self, node: Node) -> None:
        self._node = node
        # Called for every packet, with constant results.
        self.forwards = functools.cache(self._forwards)
        self.group_of = functools.cache(node.group_of)
        self._flag = functools.cache(self._read_flag)
        self._rp_filter = functools.cache(self._read_rp_filter)
        # Called for every branch of a flow, of which there is one per endpoint.
        self._routed_input = functools.lru_cache(_MOST_ROUTED)(self._route_input)
        self.reflects_mark = node.sysctls.get("net.ipv4.fwmark_reflect", "0") != "0"
        interfaces = {i.name: i.addresses for i in node.interfaces}
        self._devices: dict[str, Device] = {}
        for name, addresses in {LOOPBACK: (_LOCALHOST,), **interfaces}.items():
            four = tuple(a for a in addresses if a.family is Family.IP)
            self._devices[name] = Device(name, four, primary_addresses(four))
        self._local = frozenset(a.value for d in self._devices.values() for a in d.addresses)
        local = [e for d in self._devices.values() for e in local_entries(d)]
        tables = {LOCAL: local, MAIN: [e for d in self._devices.values() for e in connected_entries(d)]}
        routes = [r for r in node.routes if r.family is Family.IP]
        for r in routes:
            source = self.select_address(r.dev, r.via or 0) if r.type is AddressType.UNICAST else 0
            tables.setdefault(r.table, []).append(Entry(r.dst, r.type, r.dev, r.via, source))
        self._rules: RoutingRules | None = None
        if node.has_own_rules(Family.IP):
            self._rules = RoutingRules(node.rules_of(Family.IP))
        else:
            tables[MAIN] = tables[LOCAL] = local + tables[MAIN]
        self._tables = {number: Table(entries) for number, entries in tables.items()}
        self._marks = 0 if self._rules is None else self._rules.marks
        self._own_local = self._rules is not None or any(r.type is AddressType.LOCAL for r in routes)

    # Tables

    def _find(self, address: int) -> Entry | None:
        """Return the route of an address in the local table, which may be one trie with the main table."""
        return self._tables[LOCAL].find(address)

    def _lookup(self, key: LookupKey) -> Entry | NoRoute:
        """Return the route for a key, or the refusal (``fib_lookup``)."""
        return self._search(key)[0]

    def _search(self, key: LookupKey) -> tuple[Entry | NoRoute, RoutingRule | None]:
        if self._rules is not None:
            return self._rules.search(key, lambda table: self._find_in(table, key.dst))
        entry = self._tables[MAIN].find(key.dst)
        if DEFAULT in self._tables and (entry is None or _refuses(entry)):
            entry = self._tables[DEFAULT].find(key.dst)
        if entry is None or entry.type is AddressType.THROW:
            return NoRoute.NET_UNREACHABLE, None
        return refusal_of(entry) or entry, None

    def _find_in(self, number: int, address: int) -> Entry | None:
        table = self._tables.get(number)
        return None if table is None else table.find(address)

    def deciding_rule(self, dst: int, src: int, mark: int, iif: str = LOOPBACK) -> RoutingRule | None:
        """Return the rule that selects a packet's route; None if none does, or if all are default rules."""
        return self._search(LookupKey(dst, src, iif, mark=mark))[1]

    def address_type(self, address: int, dev: str | None = None) -> AddressType:
        """Return the type of an address on this node (``__inet_dev_addr_type``).

        With ``dev``, a local or broadcast address counts only if it belongs to that interface. Routing rules
        have no influence.
        """
        if address == 0 or address == _BROADCAST:
            return AddressType.BROADCAST
        if _multicast(address):
            return AddressType.MULTICAST
        entry = self._find(address)
        if entry is None or _refuses(entry) or (dev is not None and entry.dev != dev):
            return AddressType.UNICAST
        return entry.type

    def select_address(self, dev: str, dst: int) -> int:
        """Return the source address for sending out of ``dev`` to ``dst`` (``inet_select_addr``).

        The first primary address in the same network as ``dst``, else the first primary address of the
        device, else the first of any device; 0 if there is none. 127.0.0.1 has host scope, which no caller
        accepts.
        """
        own = [a for a in self._devices[dev].primary if not _loopback(a.value)]
        for a in own:
            if dst and dst in a.network:
                return a.value
        if own:
            return own[0].value
        for d in self._devices.values():
            for a in d.primary:
                if not _loopback(a.value):
                    return a.value
        return 0

    def redirect_address(self, dev: str, dst: int) -> int:
        """Return the address that REDIRECT binds on ``dev``, or 0 (``nf_nat_redirect_ipv4``)."""
        addresses = self._devices[dev].addresses
        return addresses[0].value if addresses else 0

    # Input

    def not_received(self, src: int, dst: int, dev: str) -> str | None:
        """Return None: ``ip_rcv`` drops no packet before the first hook because of its addresses."""
        return None

    def route_input(self, src: int, dst: int, dev: str, mark: int = 0) -> Path | NoRoute:
        """Route a packet that came in on ``dev`` with a mark (``ip_route_input_slow``)."""
        return self._routed_input(src, dst, dev, mark & self._marks)

    def _route_input(self, src: int, dst: int, dev: str, mark: int) -> Path | NoRoute:
        if _multicast(dst):
            return self._multicast_input(src, dst, dev, mark)
        if _multicast(src) or src == _BROADCAST:
            return NoRoute.MARTIAN
        if dst == _BROADCAST or (src == 0 and dst == 0):
            return self._broadcast_input(src, dev, mark)
        if src == 0 or dst == 0:
            return NoRoute.MARTIAN
        if (_loopback(dst) or _loopback(src)) and not self._flag("route_localnet", dev):
            return NoRoute.MARTIAN
        entry = self._lookup(LookupKey(dst, src, dev, mark=mark))
        if isinstance(entry, NoRoute):
            return entry if self.forwards(dev) else NoRoute.NOT_FORWARDING
        if entry.type is AddressType.BROADCAST:
            return self._broadcast_input(src, dev, mark)
        if entry.type is AddressType.LOCAL:
            if not self._source_valid(src, dst, None, dev, mark):
                return NoRoute.MARTIAN
            return Path(type=AddressType.LOCAL, dev=LOOPBACK, source=dst)
        if not self.forwards(dev):
            return NoRoute.NOT_FORWARDING
        if not self._source_valid(src, dst, entry.dev, dev, mark):
            return NoRoute.MARTIAN
        return entry.path

    def leads_back(self, src: int, dst: int, dev: str, mark: int = 0, *, loose: bool = False) -> bool:
        """Return whether the route to ``src`` leads out of ``dev``, the input device (``rpfilter_mt``).

        With ``loose``, out of any device. ``mark`` is the packet's with ``--validmark``, otherwise 0.
        """
        if dev == LOOPBACK:
            return True
        if src >> 24 == 0 and (dst == _BROADCAST or dst >> 8 == _LINK_GROUPS):
            return True
        # rpfilter_get_saddr
        own = 0 if _multicast(dst) or dst == _BROADCAST or dst >> 24 == 0 else dst
        entry = self._lookup(LookupKey(src, own, mark=mark))
        if not isinstance(entry, Entry) or entry.type is not AddressType.UNICAST:
            return False
        return loose or entry.dev == dev

    def _broadcast_input(self, src: int, dev: str, mark: int) -> Path | NoRoute:
        if src and not self._source_valid(src, 0, None, dev, mark):
            return NoRoute.MARTIAN
        return Path(type=AddressType.BROADCAST, dev=LOOPBACK)

    def _multicast_input(self, src: int, dst: int, dev: str, mark: int) -> Path | NoRoute:
        # ip_check_mc_rcu: all-hosts is the only group that is always joined.
        if dst != _ALL_HOSTS or _multicast(src) or src == _BROADCAST:
            return NoRoute.MARTIAN
        if _loopback(src) and not self._flag("route_localnet", dev):
            return NoRoute.MARTIAN
        if src and not self._source_valid(src, 0, None, dev, mark):
            return NoRoute.MARTIAN
        return Path(type=AddressType.MULTICAST, dev=LOOPBACK)

    def _source_valid(self, src: int, dst: int, out: str | None, dev: str, mark: int) -> bool:
        """Return whether a source is valid (``fib_validate_source``): by the quick check, or by the full one.

        The full check (``__fib_validate_source``) sees the packet's mark only with ``src_valid_mark``, and
        ``out`` as the input interface.
        """
        strict = self._rp_filter(dev)
        if not strict and (dev != out or not self._flag("send_redirects", dev)):
            if self._flag("accept_local", dev):
                return True
            if not self._own_local:
                return src not in self._local
        visible = mark if self._flag("src_valid_mark", dev) else 0
        entry = self._lookup(LookupKey(src, dst, out or LOOPBACK, mark=visible))
        if isinstance(entry, NoRoute):
            return not strict
        if entry.type is not AddressType.UNICAST and not (
            entry.type is AddressType.LOCAL and self._flag("accept_local", dev)
        ):
            return False
        if entry.dev == dev:
            return True
        return strict != 1 if self._devices[dev].addresses else not strict

    def _forwards(self, dev: str) -> bool:
        """Return whether packets received on ``dev`` may be forwarded (``IN_DEV_FORWARD``)."""
        value = self._node.sysctls.get(f"net.ipv4.conf.{dev}.forwarding")
        return (value or self._node.sysctl("net.ipv4.ip_forward")) != "0"

    def _read_flag(self, name: str, dev: str) -> bool:
        """Return a flag, which is on if it is on for all interfaces or for this one (``IN_DEV_ORCONF``).

        Linux has ``send_redirects`` on by default; a node under test has it off, because ICMP redirects would
        come out in addition to the packets under test.
        """
        get = self._node.sysctls.get
        of_all = get(f"net.ipv4.conf.all.{name}", "0")
        of_default = get(f"net.ipv4.conf.default.{name}", "0")
        return of_all != "0" or get(f"net.ipv4.conf.{dev}.{name}", of_default) != "0"

    def _read_rp_filter(self, dev: str) -> int:
        """Return the greater of the device's value and that of all devices (``IN_DEV_MAXCONF``)."""
        node = self._node
        of_default = node.sysctl("net.ipv4.conf.default.rp_filter")
        own = node.sysctls.get(f"net.ipv4.conf.{dev}.rp_filter", of_default)
        return max(int(node.sysctl("net.ipv4.conf.all.rp_filter")), int(own))

    # Output

    def route_output(
        self, dst: int, src: int = 0, *, any_source: bool = False, mark: int = 0
    ) -> Path | NoRoute:
        """Route a packet made on the node (``ip_route_output_key_hash_rcu``).

        ``src`` 0: no source is chosen yet, as for a raw socket with its own header.
        """
        if src:
            if _multicast(src) or src == _BROADCAST:
                return NoRoute.FAILED
            if _multicast(dst) or dst == _BROADCAST:
                owner = self._owner(src)
                if owner is None:
                    return NoRoute.FAILED
                return self._made(dst, src, Entry(Interval.point(dst), AddressType.UNICAST, owner, None, src))
            if not any_source and self._owner(src) is None:
                return NoRoute.FAILED
        if dst == 0:
            return Path(type=AddressType.LOCAL, dev=LOOPBACK, source=src or _LOCALHOST.value)
        entry = self._lookup(LookupKey(dst, src, mark=mark))
        if isinstance(entry, NoRoute):
            return NoRoute.FAILED
        if entry.type is AddressType.LOCAL:
            return Path(type=AddressType.LOCAL, dev=LOOPBACK, source=src or entry.source or dst)
        return self._made(dst, src, entry)

    def _made(self, dst: int, src: int, entry: Entry) -> Path | NoRoute:
        """Return the path of a packet made here (``__mkroute_output``)."""
        source = src or entry.source
        if _loopback(source) and entry.dev != LOOPBACK and not self._flag("route_localnet", entry.dev):
            return NoRoute.FAILED
        address_type = entry.type
        if dst == _BROADCAST:
            address_type = AddressType.BROADCAST
        elif _multicast(dst):
            address_type = AddressType.MULTICAST
        return Path(type=address_type, dev=entry.dev, via=entry.via, source=source)

    def reroute(self, dst: int, src: int, dev: str | None = None, mark: int = 0) -> Path | NoRoute:
        """Route a packet, bound for ``dev``, again after NAT or a new mark (``ip_route_me_harder``)."""
        return self.route_output(dst, self.source_for_rerouting(src), any_source=True, mark=mark)

    def source_for_rerouting(self, src: int) -> int:
        """Return the source with which a packet is routed again: 0 if no node can have it."""
        return src if self.address_type(src) in (AddressType.LOCAL, AddressType.UNICAST) else 0

    def route_reset(self, dst: int, src: int, mark: int = 0) -> Path | NoRoute:
        """Route a RST from ``src`` (``nf_send_reset``)."""
        return self.reroute(dst, src, mark=mark)

    def route_error(self, dst: int, about: Path, address: int, dev: str, mark: int = 0) -> Path | NoRoute:
        """Route an ICMP error to ``dst`` about a packet to ``address`` that has the route ``about``.

        Its source is that address if it is the node's (``__icmp_send``).
        """
        return self.route_output(dst, self.source_of_error(dst, about, address, dev), mark=mark)

    def source_of_error(self, dst: int, about: Path, address: int, dev: str) -> int:
        """Return the source with which an ICMP error is routed; 0 if the route determines it."""
        return address if about.type is AddressType.LOCAL else 0

    def stays_on_link(self, src: int, dev: str, out: str) -> AddressType | None:
        """Return None: ``ip_route_input_slow`` has dropped packets whose source must not be forwarded."""
        return None

    def _owner(self, address: int) -> str | None:
        """Return the device that has an address, or the last of several that got it (``__ip_dev_find``)."""
        for d in reversed(self._devices.values()):
            if any(a.value == address for a in d.addresses):
                return d.name
        entry = self._find(address)  # 127.0.0.53 is in no device's list
        return entry.dev if entry is not None and entry.type is AddressType.LOCAL else None


def _refuses(entry: Entry) -> bool:
    return entry.type is AddressType.THROW or refusal_of(entry) is not None


def _multicast(address: int) -> bool:
    return address >> 28 == 0xE


def _loopback(address: int) -> bool:
    return address >> 24 == 127
