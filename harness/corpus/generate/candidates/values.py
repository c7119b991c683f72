"""Values for the fields of a packet that satisfy constraints, likeliest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from backends.model.packet import EXTENSION_HEADERS
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.candidates.constraints import Constraints
from translate.dataclass import dataclass
from translate.ir import (
    INDEX_PROTOCOLS,
    MOBILITY,
    REVERSE_PATHS,
    AddressType,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    Protocol,
)

__all__ = ["USUAL_PORTS", "Values", "ends"]

USUAL_PORTS: Final = (80, 53, 443, 8080, 9, 33434)
"""Ports for constraints that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Sources of values for each field: the rules' constants and the node's places."""

    places: Places
    family: Family
    constants: Mapping[Field, tuple[int, ...]]

    def marks(self, constraints: Constraints) -> Iterator[int]:
        """Yield marks for a packet made on the node; the constraints may exclude some of them."""
        yield 0
        for test in constraints.masked:
            if test.field is Field.MARK:
                yield from (v.low for v in test.values if isinstance(v, Interval))
                yield from (0xFFFFFFFF & ~v.low for v in test.values if isinstance(v, Interval))
        every = [
            v.low
            for t in constraints.masked
            if t.field is Field.MARK and not t.negated
            for v in _intervals(t)
        ]
        yield _together(every)
        yield from ends(constraints.values(Field.MARK))
        yield from self.constants.get(Field.MARK, ())

    def protocols(self, constraints: Constraints) -> list[int]:
        """Return protocols that the constraints allow."""
        icmp = Protocol.ICMP if self.family is Family.IP else Protocol.ICMPV6
        others = [p for p in ends(constraints.values(Field.L4PROTO)) if 0 < p < 255]
        usual: tuple[int, ...] = (Protocol.TCP, Protocol.UDP, icmp, Protocol.SCTP, *others)
        if constraints.has(Field.ICMP_TYPE) or constraints.has(Field.ICMP_CODE):
            usual = (icmp,) * 4
        elif any(map(constraints.has, (Field.TCP_FLAGS, Field.TCP_MSS, Field.TCP_OPTIONS))):
            usual = (Protocol.TCP,) * 4
        elif any(map(constraints.has, INDEX_PROTOCOLS)):
            usual = tuple(proto for field, proto in INDEX_PROTOCOLS.items() if constraints.has(field))
        elif constraints.has(Field.MH_TYPE):
            usual = (MOBILITY,)
        elif constraints.has(Field.DPORT) or constraints.has(Field.SPORT):
            usual = (Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.TCP)
        no_protocols = EXTENSION_HEADERS if self.family is Family.IP6 else ()
        distinct = (p for p in dict.fromkeys(map(int, usual)) if p not in no_protocols)
        return [p for p in distinct if constraints.allows(Field.L4PROTO, p)]

    def ports(self, constraints: Constraints, field: Field) -> list[int]:
        """Return ports that the constraints allow."""
        values = constraints.values(field)
        ports = list(ends(values))
        if values[0].low <= 1 and values[-1].high == 65535:
            # The constraints exclude values: the values next to these come first, then usual ones.
            inner = {v for i in values for v in (i.low, i.high)} - {0, 1, 65535}
            ports = [*sorted(inner), *USUAL_PORTS, *self.constants.get(field, ())[:8]]
        return [p for p in dict.fromkeys(ports) if 0 < p < 65536 and constraints.allows(field, p)]

    def destinations(self, constraints: Constraints, hook: Hook) -> list[int]:
        """Return destinations whose packets pass the hook."""
        places = self.places
        own = (*places.own, places.loopback)
        far = (*places.outside[:3], *places.endpoints[:3], *places.inside[:3], *places.neighbours[:4])
        match hook:
            case Hook.INPUT:
                usual = own
            case Hook.FORWARD | Hook.POSTROUTING:
                usual = (*far, *(own if hook is Hook.POSTROUTING else ()))
            case _:
                usual = (*far, *own)
        addresses = self._addresses(constraints, Field.DADDR, usual)
        if constraints.has(Field.FIB_DADDR_TYPE):
            addresses += self._of_kinds(constraints)
        names = [d for d in addresses if self._reached(constraints, hook, d)]
        return list(dict.fromkeys(names))

    def _reached(self, constraints: Constraints, hook: Hook, dst: int) -> bool:
        if dst == 0 or not constraints.allows(Field.DADDR, dst):
            return False
        kind = self.places.kind(dst)
        if not constraints.allows(Field.FIB_DADDR_TYPE, int(kind)):
            return False
        local = kind is not AddressType.UNICAST
        if (hook is Hook.INPUT and not local) or (hook is Hook.FORWARD and local):
            return False
        if hook in (Hook.FORWARD, Hook.POSTROUTING, Hook.OUTPUT):
            return self._allows(constraints, self.places.behind(dst) or "lo", entry=False)
        return True

    def _of_kinds(self, constraints: Constraints) -> list[int]:
        places = self.places
        special = sorted(places.loud)
        if self.family is Family.IP:
            special += [0xFFFFFFFF, 0xE0000009]
        return [a for a in (*places.own, places.loopback, *special) if constraints.allows(Field.DADDR, a)]

    def sources(self, constraints: Constraints, hook: Hook) -> list[tuple[int, str | None]]:
        """Return sources, each with its entry interface (None: made on the node)."""
        sources: list[tuple[int, str | None]] = []
        if hook in (Hook.PREROUTING, Hook.INPUT, Hook.FORWARD, Hook.POSTROUTING):
            sources += self._from_outside(constraints, hook)
        if hook in (Hook.OUTPUT, Hook.POSTROUTING):
            sources += self._from_here(constraints)
        if hook is Hook.INPUT and self._allows(constraints, "lo", entry=True):
            sources += self._from_here(constraints)
        return sources

    def _from_here(self, constraints: Constraints) -> list[tuple[int, str | None]]:
        # Foreign addresses come last: a program needs IP_TRANSPARENT or IP_FREEBIND to send from them.
        usual = (*self.places.own, self.places.loopback, *self.places.inside[:2], *self.places.outside[:1])
        own = [
            a for a in self._addresses(constraints, Field.SADDR, usual) if self._source_kind(constraints, a)
        ]
        local = [a for a in own if self.places.kind(a) is AddressType.LOCAL]
        return [(a, None) for a in local or [a for a in own if self.places.usable(a)]]

    def _from_outside(self, constraints: Constraints, hook: Hook) -> list[tuple[int, str | None]]:
        places = self.places
        usual = (*places.outside[:3], *places.inside[:3], *places.endpoints[:6], *places.neighbours[:4])
        if any(constraints.has(field) and not constraints.allows(field, 1) for field in REVERSE_PATHS):
            usual = (*places.unrouted[:2], *usual)  # there must be no route back
        sources: list[tuple[int, str | None]] = []
        names = [i.name for i in places.node.interfaces]
        if hook is not Hook.POSTROUTING:
            names = [n for n in names if self._allows(constraints, n, entry=True)]
        for address in self._addresses(constraints, Field.SADDR, usual):
            if not self._source_kind(constraints, address) or not places.usable(address):
                continue
            link = places.behind(address)
            if link in names:
                sources.append((address, link))
            elif names and link is not None:
                sources.append((address, names[0]))
        return sources or [
            (a, n)
            for a in self._addresses(constraints, Field.SADDR, places.own)
            for n in names[:1]
            if self._source_kind(constraints, a) and places.usable(a)
        ]

    def _allows(self, constraints: Constraints, name: str, *, entry: bool) -> bool:
        return constraints.allows_interface(name, self.places.node.group_of(name), entry=entry)

    def _source_kind(self, constraints: Constraints, address: int) -> bool:
        return constraints.allows(Field.SADDR, address) and constraints.allows(
            Field.FIB_SADDR_TYPE, int(self.places.kind(address))
        )

    def _addresses(self, constraints: Constraints, field: Field, usual: Iterable[int]) -> list[int]:
        """Return allowed addresses: next to excluded ones first, then usual ones, then ends of intervals."""
        values = constraints.values(field)
        last = (1 << self.family.bits) - 1
        ends = [a for i in values for a in (i.low, i.high, i.low + 1) if a in i and a > 1]
        beside = [a for a in ends if 0 < a < last] if field in constraints.plain else []
        special = [v.low for t in constraints.masked if t.field is field for v in _intervals(t)]
        kept = [a for a in (*usual, *special) if constraints.allows(field, a)]
        wide = len(values) > 1 or values[0].low == 0 or values[-1].high == last
        # With wide constraints, the values just outside the excluded range come first; with narrow ones (a
        # prefix), an ordinary host in the prefix does.
        ordered = [*beside[:4], *kept, *beside[4:]] if wide else [*kept, *beside]
        return [a for a in dict.fromkeys(ordered) if constraints.allows(field, a)][:24]


def ends(intervals: Iterable[Interval]) -> Iterator[int]:
    """Yield the first and the last value of each interval."""
    for i in intervals:
        yield from dict.fromkeys((i.low, i.high))


def _intervals(test: FieldTest) -> Iterator[Interval]:
    yield from (v for v in test.values if isinstance(v, Interval))


def _together(values: Iterable[int]) -> int:
    result = 0
    for value in values:
        result |= value
    return result
