"""Ports that the kernel picks: known only as a class, yet the same port wherever it turns up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from backends.packet import Port, PortClass
from backends.simulator.chooser import Chooser
from translate.ir import Interval

__all__ = ["PickedPort", "Ports"]


@dataclass(frozen=True, slots=True)
class PickedPort(PortClass):
    """One pick of the kernel. Two picks from the same class are different ports' names."""

    serial: int


class Ports:
    """What is known of every picked port in one run.

    A test of a picked port splits the run by the exact share of the ports that pass it, and
    narrows the pick, so that later tests of the same port agree.
    """

    def __init__(self, chooser: Chooser) -> None:
        self._chooser = chooser
        self._possible: list[tuple[Interval, ...]] = []

    def begin(self, chooser: Chooser) -> None:
        """Forget all picks, for another run."""
        self._chooser = chooser
        self._possible.clear()

    @property
    def picked(self) -> int:
        """How many picks there have been."""
        return len(self._possible)

    def pick(self, low: int, high: int, taken: Iterable[int] = ()) -> Port:
        """Pick a port of ``low..high`` that is not in ``taken``; a full range yields a taken one.

        ``nf_nat_l4proto_unique_tuple`` gives up with a used port rather than fail.
        """
        free = _without((Interval(low, high),), taken) or (Interval(low, high),)
        if len(free) == 1 and free[0].is_point:
            return free[0].low
        self._possible.append(free)
        return PickedPort(low, high, len(self._possible) - 1)

    def within(self, port: Port, intervals: Sequence[Interval]) -> bool:
        """Return whether ``port`` is in one of ``intervals``, splitting the run when unknown."""
        if not isinstance(port, PickedPort):
            number = port
            assert isinstance(number, int)
            return any(i.low <= number <= i.high for i in intervals)
        possible = self._possible[port.serial]
        inside = _intersection(possible, intervals)
        share = Fraction(_size(inside), _size(possible))
        if self._chooser.happens(share):
            self._possible[port.serial] = inside
            return True
        self._possible[port.serial] = _difference(possible, inside)
        return False

    def equal(self, a: Port, b: Port) -> bool:
        """Return whether two ports of otherwise equal tuples are the same port.

        Two picks of otherwise equal tuples never are: the kernel made sure of that when it picked.
        """
        if isinstance(a, PickedPort):
            return a == b if isinstance(b, PickedPort) else self.within(a, (_point(b),))
        return self.within(b, (_point(a),))

    def could_equal(self, a: Port, b: Port) -> bool:
        """Return whether the two could be the same port, without deciding it."""
        if isinstance(a, PickedPort):
            if isinstance(b, PickedPort):
                return a == b
            return any(_point(b).low in i for i in self._possible[a.serial])
        return self.could_equal(b, a) if isinstance(b, PickedPort) else a == b

    def shown(self, port: Port | None) -> Port | None:
        """Return the port as an outcome shows it: a number, or the class that is left of it."""
        if not isinstance(port, PickedPort):
            return port
        possible = self._possible[port.serial]
        if len(possible) == 1 and possible[0].is_point:
            return possible[0].low
        narrowed = possible[0].low > port.low or possible[-1].high < port.high
        if narrowed:
            return PortClass(possible[0].low, possible[-1].high)
        return PortClass(port.low, port.high)


def _point(port: Port) -> Interval:
    assert isinstance(port, int)
    return Interval.point(port)


def _size(intervals: Iterable[Interval]) -> int:
    return sum(i.size for i in intervals)


def _without(intervals: Sequence[Interval], taken: Iterable[int]) -> tuple[Interval, ...]:
    return _difference(intervals, [Interval.point(t) for t in sorted(set(taken))])


def _intersection(a: Sequence[Interval], b: Sequence[Interval]) -> tuple[Interval, ...]:
    found = []
    for x in a:
        for y in sorted(_merged(b)):
            low, high = max(x.low, y.low), min(x.high, y.high)
            if low <= high:
                found.append(Interval(low, high))
    return tuple(sorted(found))


def _merged(intervals: Sequence[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for i in sorted(intervals):
        if merged and i.low <= merged[-1].high + 1:
            merged[-1] = Interval(merged[-1].low, max(merged[-1].high, i.high))
        else:
            merged.append(i)
    return merged


def _difference(a: Sequence[Interval], b: Sequence[Interval]) -> tuple[Interval, ...]:
    left = list(a)
    for cut in b:
        rest = []
        for i in left:
            if cut.high < i.low or cut.low > i.high:
                rest.append(i)
                continue
            if i.low < cut.low:
                rest.append(Interval(i.low, cut.low - 1))
            if cut.high < i.high:
                rest.append(Interval(cut.high + 1, i.high))
        left = rest
    return tuple(sorted(left))
