"""Sources and destinations of packets on a node: its own addresses, its networks, the world outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from backends.model.node import Node
from backends.simulator.matching.ipsets import Members, members_of
from harness.corpus.formats.entry import Entries
from harness.corpus.random.kinds import is_of_link
from translate.dataclass import dataclass, field
from translate.ir import (
    AddressType,
    Dnat,
    Family,
    Field,
    FieldTest,
    Interval,
    Ruleset,
    parse_address,
)

__all__ = ["Places"]

_WORLD = {
    # RFC 5737 and RFC 3849, then public resolvers: some of these are outside any cluster.
    Family.IP: ("198.51.100.7", "203.0.113.7", "192.0.2.7", "8.8.8.8", "100.100.7.7"),
    Family.IP6: ("2001:db8:ffff::7", "2001:4860:4860::8888", "2620:fe::fe"),
}


_LOOPBACK_BROADCAST = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Places:
    """Addresses by location, each group sorted from usual to unusual; ``sets`` are the members of ipsets."""

    node: Node
    family: Family
    own: tuple[int, ...]
    loopback: int
    endpoints: tuple[int, ...]
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    neighbours: tuple[int, ...]
    unrouted: tuple[int, ...]
    loud: frozenset[int]
    exit: str
    """The interface of the widest route, usually the default route; empty without a route."""
    sets: Mapping[str, Members] = field(compare=False, repr=False)
    _entries: Entries = field(compare=False, repr=False)
    _known: dict[int, str | None] = field(default_factory=dict, compare=False, repr=False)
    """A cache of the results of :meth:`behind`."""

    @classmethod
    def of(cls, ruleset: Ruleset, node: Node) -> Places:
        """Return the places of ``node``; endpoints are the addresses that the rules' DNAT targets name."""
        family = ruleset.family
        addresses = [a for i in node.interfaces for a in i.addresses if a.family is family]
        own = tuple(dict.fromkeys(a.value for a in addresses))
        loud = {a.network.high for a in addresses if a.network.size > 2 and family is Family.IP}
        loud |= {a.network.low for a in addresses if a.network.size > 2}
        entries = Entries(node, family)
        known: dict[int, str | None] = {}

        def behind(address: int) -> str | None:
            if address not in known:
                known[address] = _behind(entries, address)
            return known[address]

        targets = set(_endpoints(ruleset))
        named = set(_named(ruleset))
        taken = named | set(own)
        neighbours = []
        routed = [a.network for a in addresses]
        routed += [r.dst for r in node.main_routes(family)]
        for network in routed:
            if network.size < 1 << (family.bits - 1):
                neighbours += list(_hosts(network, taken))
        usual = [n for n in neighbours if n not in loud and behind(n) is not None]
        default = _exit(node, family)
        world = [a for a in (parse_address(family, t) for t in _WORLD[family]) if a not in named]
        outside = [a for a in world if behind(a) not in (None, "")]
        links = {behind(e) for e in targets} - {None, "", default}
        inside = [n for n in usual if behind(n) in links and n not in targets]
        inside += [n for n in usual if n not in targets and n not in inside and behind(n) != default]
        near = [n for n in usual if behind(n) == default and n not in targets]
        return cls(
            node=node,
            family=family,
            own=own,
            loopback=0x7F000001 if family is Family.IP else 1,
            endpoints=tuple(sorted(targets)),
            inside=tuple(dict.fromkeys(inside)),
            outside=tuple(dict.fromkeys((*outside, *near))),
            neighbours=tuple(dict.fromkeys(usual)),
            unrouted=tuple(a for a in world if behind(a) == ""),
            loud=frozenset(loud),
            exit=default,
            sets=members_of(ruleset.sets, family),
            _entries=entries,
            _known=known,
        )

    def behind(self, address: int) -> str | None:
        """Return the interface that leads to an address; None: the node itself, empty: no route."""
        known = self._known.get(address, "?")
        if known == "?":
            known = self._known[address] = _behind(self._entries, address)
        return known

    def kind(self, address: int) -> AddressType:
        """Return the type of an address on this node (``addrtype``)."""
        four = self.family is Family.IP
        if address in (0, 0xFFFFFFFF) and four:
            return AddressType.BROADCAST
        if address >> (28 if four else 120) == (0xE if four else 0xFF):
            return AddressType.MULTICAST
        if self.behind(address) is None:
            return AddressType.LOCAL
        return AddressType.BROADCAST if address in self.loud and four else AddressType.UNICAST

    def on_link(self, address: int) -> bool:
        """Return whether an IPv6 address is multicast or link-local."""
        return is_of_link(self.family, address)

    def usable(self, address: int) -> bool:
        """Return whether an ordinary host can have the address."""
        if self.family is Family.IP and (address >> 24 == 0 or address == _LOOPBACK_BROADCAST):
            return False  # RFC 1122: "this network", and the broadcast address of 127.0.0.0/8
        return address != 0 and self.kind(address) in (AddressType.UNICAST, AddressType.LOCAL)


def _behind(entries: Entries, address: int) -> str | None:
    try:
        return entries.of(address)
    except ValueError:
        return ""


def _exit(node: Node, family: Family) -> str:
    """Return the interface of the widest route, usually the default route."""
    widest = max(node.main_routes(family), key=lambda r: r.dst.size, default=None)
    return "" if widest is None else widest.dev


def _hosts(network: Interval, taken: set[int]) -> Iterator[int]:
    if network.size <= 2:
        yield network.low
        return
    free = (a for a in range(network.low + 5, network.high) if a not in taken)
    yield from (a for _, a in zip(range(2), free, strict=False))


def _endpoints(ruleset: Ruleset) -> Iterator[int]:
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                for action in rule.actions:
                    if isinstance(action, Dnat) and action.addresses is not None:
                        yield from {action.addresses.low, action.addresses.high}


def _named(ruleset: Ruleset) -> Iterable[int]:
    """Yield the single addresses that rules test."""
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                for test in rule.tests:
                    if isinstance(test, FieldTest) and test.field in (Field.SADDR, Field.DADDR):
                        yield from (v.low for v in test.values if isinstance(v, Interval) and v.is_point)
