"""Flows for one member of a class, made from the flows of another by exchanging the constants."""

from __future__ import annotations

from backends.model.flow import Send, Step
from backends.model.packet import Packet
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.groups import Constant, Kind, Member
from harness.corpus.generate.candidates.candidates import Steps
from translate.dataclass import dataclass, field, replace
from translate.ir import Interval

__all__ = ["Exchange"]


@dataclass(slots=True)
class _Values:
    """Pairs of constants of one kind: the old member's and the new member's."""

    points: dict[int, int] = field(default_factory=dict)
    ranges: list[tuple[Interval, Interval]] = field(default_factory=list)

    def add(self, of: Interval, to: Interval) -> None:
        if of.is_point:
            self.points.setdefault(of.low, to.low)
        else:
            self.ranges.append((of, to))

    def point(self, value: int) -> int:
        """Return the new member's value for a value of the old member; any other value is unchanged."""
        return self.points.get(value, value)

    def near(self, value: int) -> int:
        """Return :meth:`point`; values in a range, or next to a range or point, are also replaced."""
        if value in self.points:
            return self.points[value]
        for of, to in self.ranges:
            if of.low - 1 <= value <= of.high + 1:
                return to.low + (value - of.low)
        for step in (-1, 1):
            if value - step in self.points:
                return self.points[value - step] + step
        return value


@dataclass(slots=True)
class Exchange:
    """A replacement of one member's constants in packets by those of another member of equal shape."""

    places: Places
    _addresses: _Values = field(default_factory=_Values)
    _ports: _Values = field(default_factory=_Values)

    @classmethod
    def of(cls, of: Member, to: Member, places: Places) -> Exchange:
        """Return the exchange between two members."""
        made = cls(places)
        for old, new in zip(of.constants, to.constants, strict=True):
            made._add(old, new)
        return made

    def _add(self, old: Constant, new: Constant) -> None:
        if isinstance(old.value, Interval) and isinstance(new.value, Interval):
            (self._addresses if old.kind == Kind.ADDRESS else self._ports).add(old.value, new.value)

    def steps(self, steps: Steps) -> Steps | None:
        """Return the steps for the other member; None if no host can send such a packet."""
        made: list[Step] = []
        for step in steps:
            if isinstance(step, Send):
                sent = self._send(step)
                if sent is None:
                    return None
                step = sent
            made.append(step)
        return tuple(made)

    def _send(self, send: Send) -> Send | None:
        packet: Packet = send.packet
        src, dst = self._addresses.near(packet.src), self._addresses.near(packet.dst)
        entry = send.entry
        if entry is not None and src != packet.src:
            behind = self.places.behind(src)
            if not behind:
                return None
            entry = behind
        last = (1 << self.places.family.bits) - 1
        if not (0 < src <= last and 0 < dst <= last):
            return None
        packet = replace(packet, src=src, dst=dst)
        if packet.has_ports:
            sport, dport = packet.sport, packet.dport
            if isinstance(sport, int):
                sport = self._ports.point(sport)
            if isinstance(dport, int):
                dport = self._ports.near(dport)
                if not 0 < dport < 1 << 16:
                    return None
            packet = replace(packet, sport=sport, dport=dport)
        return Send(packet=packet, entry=entry)
