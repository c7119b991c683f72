"""Values for the fields of a packet that satisfy wants, likeliest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from harness.corpus.generate.places import Places
from harness.corpus.generate.wants import Wants
from translate.ir import INDEX_PROTOCOLS, AddressType, Family, Field, FieldTest, Hook, Interval, Protocol

__all__ = ["USUAL_PORTS", "Values", "ends"]

USUAL_PORTS: Final = (80, 53, 443, 8080, 9, 33434)
"""Ports for wants that name none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Sources of values for each field: the rules' constants and the node's places."""

    places: Places
    family: Family
    constants: Mapping[Field, tuple[int, ...]]

    def marks(self, wants: Wants) -> Iterator[int]:
        """Yield marks for a packet made on the node; the wants may exclude some of them."""
        yield 0
        for test in wants.masked:
            if test.field is Field.MARK:
                yield from (v.low for v in test.values if isinstance(v, Interval))
                yield from (0xFFFFFFFF & ~v.low for v in test.values if isinstance(v, Interval))
        every = [
            v.low for t in wants.masked if t.field is Field.MARK and not t.negated for v in _intervals(t)
        ]
        yield _together(every)
        yield from ends(wants.values(Field.MARK))
        yield from self.constants.get(Field.MARK, ())

    def protocols(self, wants: Wants) -> list[int]:
        """Return protocols that the wants allow."""
        icmp = Protocol.ICMP if self.family is Family.IP else Protocol.ICMPV6
        others = [p for p in ends(wants.values(Field.L4PROTO)) if 0 < p < 255]
        usual: tuple[int, ...] = (Protocol.TCP, Protocol.UDP, icmp, Protocol.SCTP, *others)
        if wants.asks(Field.ICMP_TYPE) or wants.asks(Field.ICMP_CODE):
            usual = (icmp,) * 4
        elif wants.asks(Field.TCP_FLAGS) or wants.asks(Field.TCP_MSS):
            usual = (Protocol.TCP,) * 4
        elif any(map(wants.asks, INDEX_PROTOCOLS)):
            usual = tuple(proto for field, proto in INDEX_PROTOCOLS.items() if wants.asks(field))
        elif wants.asks(Field.DPORT) or wants.asks(Field.SPORT):
            usual = (Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.TCP)
        return [p for p in dict.fromkeys(map(int, usual)) if wants.allows(Field.L4PROTO, p)]

    def ports(self, wants: Wants, field: Field) -> list[int]:
        """Return ports that the wants allow."""
        values = wants.values(field)
        ports = list(ends(values))
        if values[0].low <= 1 and values[-1].high == 65535:
            # The wants exclude values: the values next to the excluded ones come first, then usual ones.
            inner = {v for i in values for v in (i.low, i.high)} - {0, 1, 65535}
            ports = [*sorted(inner), *USUAL_PORTS, *self.constants.get(field, ())[:8]]
        return [p for p in dict.fromkeys(ports) if 0 < p < 65536 and wants.allows(field, p)]

    def destinations(self, wants: Wants, hook: Hook) -> list[int]:
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
        addresses = self._addresses(wants, Field.DADDR, usual)
        if wants.asks(Field.FIB_DADDR_TYPE):
            addresses += self._of_kinds(wants)
        names = [d for d in addresses if self._reached(wants, hook, d)]
        return list(dict.fromkeys(names))

    def _reached(self, wants: Wants, hook: Hook, dst: int) -> bool:
        if dst == 0 or not wants.allows(Field.DADDR, dst):
            return False
        kind = self.places.kind(dst)
        if not wants.allows(Field.FIB_DADDR_TYPE, int(kind)):
            return False
        local = kind is not AddressType.UNICAST
        if (hook is Hook.INPUT and not local) or (hook is Hook.FORWARD and local):
            return False
        if hook in (Hook.FORWARD, Hook.POSTROUTING, Hook.OUTPUT):
            return wants.allows_name(Field.OIF, self.places.behind(dst) or "lo")
        return True

    def _of_kinds(self, wants: Wants) -> list[int]:
        places = self.places
        odd = sorted(places.loud)
        if self.family is Family.IP:
            odd += [0xFFFFFFFF, 0xE0000009]
        return [a for a in (*places.own, places.loopback, *odd) if wants.allows(Field.DADDR, a)]

    def sources(self, wants: Wants, hook: Hook) -> list[tuple[int, str | None]]:
        """Return sources, each with its entry interface (None: made on the node)."""
        sources: list[tuple[int, str | None]] = []
        if hook in (Hook.PREROUTING, Hook.INPUT, Hook.FORWARD, Hook.POSTROUTING):
            sources += self._from_outside(wants, hook)
        if hook in (Hook.OUTPUT, Hook.POSTROUTING):
            sources += self._from_here(wants)
        if hook is Hook.INPUT and wants.allows_name(Field.IIF, "lo"):
            sources += self._from_here(wants)
        return sources

    def _from_here(self, wants: Wants) -> list[tuple[int, str | None]]:
        # Foreign addresses come last: a program needs IP_TRANSPARENT or IP_FREEBIND to send from them.
        usual = (*self.places.own, self.places.loopback, *self.places.inside[:2], *self.places.outside[:1])
        own = [a for a in self._addresses(wants, Field.SADDR, usual) if self._source_kind(wants, a)]
        local = [a for a in own if self.places.kind(a) is AddressType.LOCAL]
        return [(a, None) for a in local or [a for a in own if self.places.usable(a)]]

    def _from_outside(self, wants: Wants, hook: Hook) -> list[tuple[int, str | None]]:
        places = self.places
        usual = (*places.outside[:3], *places.inside[:3], *places.endpoints[:6], *places.neighbours[:4])
        sources: list[tuple[int, str | None]] = []
        names = [i.name for i in places.node.interfaces]
        if hook is not Hook.POSTROUTING:
            names = [n for n in names if wants.allows_name(Field.IIF, n)]
        for address in self._addresses(wants, Field.SADDR, usual):
            if not self._source_kind(wants, address) or not places.usable(address):
                continue
            link = places.behind(address)
            if link in names:
                sources.append((address, link))
            elif names and link is not None:
                sources.append((address, names[0]))
        return sources or [
            (a, n)
            for a in self._addresses(wants, Field.SADDR, places.own)
            for n in names[:1]
            if self._source_kind(wants, a) and places.usable(a)
        ]

    def _source_kind(self, wants: Wants, address: int) -> bool:
        return wants.allows(Field.SADDR, address) and wants.allows(
            Field.FIB_SADDR_TYPE, int(self.places.kind(address))
        )

    def _addresses(self, wants: Wants, field: Field, usual: Iterable[int]) -> list[int]:
        """Return allowed addresses: next to excluded ones first, then usual ones, then ends of intervals."""
        values = wants.values(field)
        last = (1 << self.family.bits) - 1
        ends = [a for i in values for a in (i.low, i.high, i.low + 1) if a in i and a > 1]
        beside = [a for a in ends if 0 < a < last] if field in wants.plain else []
        odd = [v.low for t in wants.masked if t.field is field for v in _intervals(t)]
        kept = [a for a in (*usual, *odd) if wants.allows(field, a)]
        wide = len(values) > 1 or values[0].low == 0 or values[-1].high == last
        # With wide wants, the values just outside the excluded range come first; with narrow wants (a
        # prefix), an ordinary host in the prefix does.
        ordered = [*beside[:4], *kept, *beside[4:]] if wide else [*kept, *beside]
        return [a for a in dict.fromkeys(ordered) if wants.allows(field, a)][:24]


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
