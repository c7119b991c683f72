"""ipsets as named sets, one each, shared by all rules that use them.

A key has a port with its protocol, so one set serves all protocols. ``th sport`` and ``th dport`` read the
port for tcp, udp, sctp and udplite. Elements of a protocol without ports are refused, and also those of ICMP,
whose "port" is type and code, because they would need another key. For a packet without a readable transport
header the key cannot be built and the rule ends (``nft_payload_eval``, ``fragments``). A negated test holds
for such a packet, so it is written as two rules (``alternatives``).

Elements with nets become intervals, which must not overlap: for each address the longest prefix decides
(``nomatch`` included), and the addresses in the set are joined into intervals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from translate.dataclass import dataclass, field
from translate.ir import (
    SET_PORT_PROTOCOLS,
    Cell,
    Entry,
    Family,
    Field,
    Interval,
    IpSet,
    Origin,
    Protocol,
    SetDirection,
    SetElement,
    SetTest,
    SetType,
)
from translate.ir.intervals import union
from translate.nft.legal import Element, InSet, Key, LegalMap
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver

__all__ = ["NamedSets", "ends_the_rule", "intervals_of"]


@dataclass(slots=True)
class NamedSets:
    """The nft sets for ipsets; each is made when a rule first uses it."""

    ipsets: Mapping[str, IpSet]
    family: Family
    names: NameGiver
    filled: Mapping[str, str] = field(default_factory=dict)
    """The names of the sets for ipsets that rules change, by the ipset's name."""
    made: dict[tuple[str, bool], LegalMap] = field(default_factory=dict)
    """The sets by the ipset's name; tests of ``nomatch`` elements have a separate set."""

    def match(self, test: SetTest) -> InSet:
        """Return the match on a set. Raises CannotSay for elements that cannot be expressed."""
        ipset = self.ipsets[test.name]
        key = _key(ipset, test.directions)
        if test.name in self.filled:
            _refuse_other_protocols(ipset)
            return InSet(self.filled[test.name], key, test.negated)
        key_of_set = (test.name, test.nomatch)
        if key_of_set not in self.made:
            self.made[key_of_set] = self._make(ipset, key, member=not test.nomatch)
        return InSet(self.made[key_of_set].name, key, test.negated)

    def _make(self, ipset: IpSet, key: Key, *, member: bool) -> LegalMap:
        """Return the set, with the key of the first rule that uses it; all keys have one type."""
        if ipset.type is SetType.BITMAP_PORT:
            keys = list(_bitmap(ipset.elements))
        else:
            _refuse_other_protocols(ipset)
            keys = list(intervals_of(ipset, self.family, member=member))
        line = f", line {ipset.origin.line} of {ipset.origin.file}" if ipset.origin.line else ""
        suffix = "" if member else "_nomatch"
        return LegalMap(
            name=self.names.give(f"set_{ipset.name}{suffix}"),
            key=key,
            data=None,
            interval=any(not interval.is_point for key, _ in keys for interval in key),
            elements=tuple(Element(Entry(key=key, actions=(), origin=origin)) for key, origin in keys),
            note=f"{'' if member else 'nomatch elements of '}ipset {ipset.name} {ipset.type}{line}",
        )


def _key(ipset: IpSet, directions: tuple[SetDirection, ...]) -> Key:
    """Return the fields with which a rule tests a set; the ports of a bitmap are those of TCP and UDP."""
    fields = ipset.fields(directions)
    return (Field.L4PROTO, *fields) if ipset.type is SetType.BITMAP_PORT else fields


def ends_the_rule(test: SetTest, ipsets: Mapping[str, IpSet]) -> bool:
    """Return whether the test is true of packets for which no key can be built."""
    return test.negated and Cell.PORT in ipsets[test.name].type.cells


def intervals_of(
    ipset: IpSet, family: Family, *, member: bool = True
) -> Iterable[tuple[tuple[Interval, ...], Origin]]:
    """Yield the members of a set as disjoint keys, each with the origin of one element.

    If not ``member``, yield the keys that ``nomatch`` elements exclude; only a set with nets has such
    elements.
    """
    cells = ipset.type.cells
    if Cell.NET not in cells:
        yield from ((element.key, element.origin) for element in ipset.elements)
        return
    at = cells.index(Cell.NET)

    def others(element: SetElement) -> tuple[Interval, ...]:
        return (*element.key[:at], *element.key[at + 1 :])

    for rest, group in groupby(sorted(ipset.elements, key=others), others):
        elements = list(group)
        places = {element.key[at].low: element.origin for element in elements}
        for interval in _longest_prefix(elements, at, family, member=member):
            origin = places.get(interval.low, elements[0].origin)
            yield (*rest[:at], interval, *rest[at:]), origin


def _longest_prefix(elements: list[SetElement], at: int, family: Family, *, member: bool) -> list[Interval]:
    """Return the addresses whose longest prefix is (not) a ``nomatch`` element, as disjoint intervals."""
    intervals: list[Interval] = []
    around: list[tuple[Interval, bool]] = []  # the prefixes that contain the next address, widest first
    next_address = 0

    def up_to(high: int) -> None:
        nonlocal next_address
        if around and next_address <= high and around[-1][1]:
            intervals.append(Interval(next_address, high))
        next_address = high + 1

    for element in sorted(elements, key=lambda e: (e.key[at].low, -e.key[at].size)):
        net = element.key[at]
        while around and around[-1][0].high < net.low:
            up_to(around[-1][0].high)
            around.pop()
        up_to(net.low - 1)
        around.append((net, element.nomatch is not member))
    while around:
        up_to(around[-1][0].high)
        around.pop()
    return [half for interval in union(intervals) for half in _halves(interval, family)]


def _halves(interval: Interval, family: Family) -> tuple[Interval, ...]:
    """Split the interval of all addresses in two, because nft refuses it in a set."""
    if interval.size < 1 << family.bits:
        return (interval,)
    middle = 1 << (family.bits - 1)
    return Interval(0, middle - 1), Interval(middle, interval.high)


def _bitmap(elements: Iterable[SetElement]) -> Iterable[tuple[tuple[Interval, ...], Origin]]:
    """Return the ports as keys of TCP and of UDP, with adjacent ports joined."""
    places = {element.key[0].low: element.origin for element in elements}
    for ports in union(Interval.point(port) for port in places):
        for proto in (Protocol.TCP, Protocol.UDP):
            yield (Interval.point(proto), ports), places[ports.low]


def _refuse_other_protocols(ipset: IpSet) -> None:
    if Cell.PROTOCOL not in ipset.type.cells:
        return
    at = ipset.type.cells.index(Cell.PROTOCOL)
    other = next((e for e in ipset.elements if e.key[at].low not in SET_PORT_PROTOCOLS), None)
    if other is not None:
        number = other.key[at].low
        reason = f"ipset {ipset.name} has an element of protocol {number} ({other.origin.place})"
        raise CannotSay("ipset-protocol", f"{reason}, which has no ports")
