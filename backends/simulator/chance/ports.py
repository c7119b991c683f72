"""Ports that the kernel picks: only their range is known, and all uses of one pick are the same port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from backends.model.packet import Port, PortClass
from backends.simulator.chance.chooser import Chance
from translate.dataclass import dataclass
from translate.ir import Interval
from translate.ir.intervals import IntervalSet, intersection, subtraction, union

__all__ = ["PickedPort", "Ports"]


_GUESS: Final = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class PickedPort(PortClass):
    """One pick of the kernel, by its number among the picks of a run."""

    serial: int


@dataclass(slots=True)
class _Pick:
    """The facts about a pick: its possible ports, and other picks that differ from it.

    ``drawn``: every possible port is equally likely. Otherwise some kernels draw, and others take the first.
    """

    possible: IntervalSet
    drawn: bool
    others: set[int]


class Ports:
    """All picked ports of one run.

    A test of a picked port splits the run by the exact share of the ports that pass it, and narrows the pick,
    so that later tests of the same port agree. If kernels pick differently, the shares are a guess, and
    ``guessed`` is set.
    """

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._picks: list[_Pick] = []
        self.guessed = False

    def begin(self, chance: Chance) -> None:
        """Forget all picks, for another run."""
        self._chance = chance
        self._picks.clear()

    @property
    def picked(self) -> int:
        """The number of picks so far."""
        return len(self._picks)

    def pick(self, low: int, high: int, taken: Iterable[Port] = (), *, drawn: bool = True) -> Port:
        """Pick a port of ``low..high`` that is not in ``taken``, or any port of a full range.

        ``nf_nat_l4proto_unique_tuple`` returns a used port instead of failing. ``drawn``: every kernel draws
        the port at random.
        """
        numbers, others = [], dict[int, PickedPort]()
        for port in taken:
            if isinstance(port, PickedPort):
                others[port.serial] = port
            elif isinstance(port, int):
                numbers.append(port)
        every = _range(low, high)
        free = (subtraction(every, union(map(Interval.point, numbers))) or every) if numbers else every
        if others and _size(free) <= len(others):
            # Each of the others has a port of its own, so those that can only be here leave none.
            here = {n: port for n, port in others.items() if not subtraction(self._picks[n].possible, free)}
            if len(here) >= _size(free):
                return next(iter(here.values()))
        if len(free) == 1 and free[0].is_point:
            return free[0].low
        serial = len(self._picks)
        self._picks.append(_Pick(free, drawn, set(others)))
        for other in others:
            self._picks[other].others.add(serial)
        return PickedPort(low, high, serial)

    def guess(self) -> bool:
        """Return whether a kernel does something that only some versions do."""
        self.guessed = True
        return self._chance.happens(_GUESS)

    def within(self, port: Port, intervals: Sequence[Interval]) -> bool:
        """Return whether ``port`` is in one of ``intervals``, splitting the run if it is not known."""
        if not isinstance(port, PickedPort):
            number = port
            assert isinstance(number, int)
            return any(i.low <= number <= i.high for i in intervals)
        pick = self._picks[port.serial]
        inside = intersection(pick.possible, union(intervals))
        if self._falls(Fraction(_size(inside), _size(pick.possible)), pick):
            pick.possible = inside
            return True
        pick.possible = subtraction(pick.possible, inside)
        return False

    def equal(self, a: Port, b: Port) -> bool:
        """Return whether two ports of otherwise equal tuples are the same port.

        Two picks differ if their tuples were otherwise equal when the second was made, because the kernel
        picks a free port.
        """
        if not isinstance(a, PickedPort):
            return self.within(b, (_point(a),))
        if not isinstance(b, PickedPort):
            return self.within(a, (_point(b),))
        first, other = self._picks[a.serial], self._picks[b.serial]
        if first is other or not self.could_equal(a, b):
            return first is other
        both = intersection(first.possible, other.possible)
        share = Fraction(_size(both), _size(first.possible) * _size(other.possible))
        if not self._falls(share, first, other):
            first.others.add(b.serial)
            other.others.add(a.serial)
            return False
        first.possible = both
        first.others |= other.others
        for third in other.others:
            self._picks[third].others.add(a.serial)
        self._picks = [first if pick is other else pick for pick in self._picks]
        return True

    def _falls(self, share: Fraction, *picks: _Pick) -> bool:
        """Return whether an event of probability ``share`` happens; the share counts equally likely ports."""
        if 0 < share < 1 and not all(pick.drawn for pick in picks):
            self.guessed = True
            share = _GUESS
        return self._chance.happens(share)

    def could_equal(self, a: Port, b: Port) -> bool:
        """Return whether the two could be the same port, without splitting the run."""
        if not isinstance(a, PickedPort):
            return self.could_equal(b, a) if isinstance(b, PickedPort) else a == b
        first = self._picks[a.serial]
        if not isinstance(b, PickedPort):
            return any(_point(b).low in i for i in first.possible)
        other = self._picks[b.serial]
        if b.serial in first.others or a.serial in other.others:
            return False
        return first is other or bool(intersection(first.possible, other.possible))

    def same(self, a: Port, b: Port) -> bool:
        """Return whether the two are known to be the same port, without splitting the run."""
        if isinstance(a, PickedPort) and isinstance(b, PickedPort):
            return self._picks[a.serial] is self._picks[b.serial]
        return self._known(a) == self._known(b)

    def _known(self, port: Port) -> Port:
        """Return the number of a pick that has only one possible port, and any other port as it is."""
        if isinstance(port, PickedPort):
            possible = self._picks[port.serial].possible
            if len(possible) == 1 and possible[0].is_point:
                return possible[0].low
        return port

    def shown(self, port: Port | None) -> Port | None:
        """Return the port in the form of outcomes: a number, or the range of its possible values."""
        port = None if port is None else self._known(port)
        if not isinstance(port, PickedPort):
            return port
        possible = self._picks[port.serial].possible
        narrowed = possible[0].low > port.low or possible[-1].high < port.high
        if narrowed:
            return PortClass(possible[0].low, possible[-1].high)
        return PortClass(port.low, port.high)


@lru_cache(maxsize=256)
def _range(low: int, high: int) -> IntervalSet:
    return (Interval(low, high),)


def _point(port: Port) -> Interval:
    assert isinstance(port, int)
    return Interval.point(port)


def _size(intervals: Iterable[Interval]) -> int:
    return sum(i.size for i in intervals)
