"""Targets for a run at 10,000 services, and the results.

The targets were set before the code was written. A missed target names a page with a profile of the time or
memory, and the improvements that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from tests.lab.bench.figures import Cell, Figures, middle, ratio
from tests.lab.bench.subjects import OFFLOADING, PLAIN

__all__ = ["AT", "Outcome", "outcomes"]

AT: Final = 10_000
"""The number of services for which there are targets."""

_LEGACY: Final = "iptables-legacy"
_FLAT: Final = "nfparity -O2"
_TC: Final = "nfparity tc eBPF"
_REPLAY: Final = "replay through nftables, flows"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A target and the result. ``limit`` is the maximum of ``value``, or its minimum with ``at_least``.

    Both are in ``unit``. ``profile`` is the page under ``tests/lab/bench/`` that explains a miss, or None if
    there is none.
    """

    name: str
    limit: float
    value: float
    unit: str
    at_least: bool
    profile: str | None

    @property
    def reached(self) -> bool:
        """True if the value is on the right side of the limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    limit: float
    unit: str
    value: Callable[[Figures], float | None]
    profile: str | None = None
    at_least: bool = False


def outcomes(figures: Figures) -> Iterator[Outcome]:
    """Yield the targets that were measured, with their results."""
    for row in _ROWS:
        if (value := row.value(figures)) is not None:
            yield Outcome(row.name, row.limit, value, row.unit, row.at_least, row.profile)


def _cell(figures: Figures, subject: str) -> Cell | None:
    return figures.cell(subject, AT)


def _ratio(ours: Cell | None, theirs: Cell | None, measure: str) -> float | None:
    if ours is None or theirs is None:
        return None
    return ratio(ours.samples(measure), theirs.samples(measure))


def _median(measure: str, scale: float = 1.0) -> Callable[[Figures], float | None]:
    """Return a function that returns the median of the translation at ``-O2``."""

    def value(figures: Figures) -> float | None:
        cell = _cell(figures, _FLAT)
        measured = None if cell is None else middle(cell.samples(measure))
        return None if measured is None else measured * scale

    return value


def _over(subject: str, base: str, measure: str) -> Callable[[Figures], float | None]:
    """Return a function that returns the ratio of a subject to ``base``."""

    def value(figures: Figures) -> float | None:
        return _ratio(_cell(figures, subject), _cell(figures, base), measure)

    return value


def _growth(subject: str) -> Callable[[Figures], float | None]:
    """Return a function that returns the growth of the ratio to plain forwarding from the smallest size."""

    def value(figures: Figures) -> float | None:
        medians = []
        for size in (figures.sizes()[0], AT):
            medians.append(_ratio(figures.cell(subject, size), figures.cell(PLAIN, size), "first"))
        small, large = medians
        return large / small if small and large and figures.sizes()[0] < AT else None

    return value


def _wide(figures: Figures) -> float | None:
    cells = {c.subject: c for c in figures.wide if c.services == AT}
    return _ratio(cells.get(_FLAT), cells.get(_LEGACY), "total")


def _speed(name: str) -> Callable[[Figures], float | None]:
    return lambda figures: middle(figures.speeds.get(name, {}).get(AT, ()))


_ROWS: Final = (
    _Row("end to end, relative to iptables-legacy", 1.0, "x", _over(_FLAT, _LEGACY, "total")),
    _Row("load through libnftables", 0.6, "s", _median("load"), "missed/load.md"),
    _Row("end to end with five endpoints per service, relative to iptables-legacy", 1.2, "x", _wide),
    _Row("endpoints of one service change", 1.0, "ms", _median("change", 1e3), "missed/change.md"),
    _Row("kernel memory", 8.0, "MiB", _median("memory", 1 / 1024), "missed/memory.md"),
    _Row(
        "first packet through nftables, relative to plain forwarding",
        2.1,
        "x",
        _over(_FLAT, PLAIN, "first"),
        "missed/first-packet.md",
    ),
    _Row(
        "first packet through tc eBPF, relative to plain forwarding",
        1.6,
        "x",
        _over(_TC, PLAIN, "first"),
        "missed/first-packet.md",
    ),
    _Row(
        "established packet through a flowtable, relative to nftables",
        0.7,
        "x",
        _over(OFFLOADING, _FLAT, "established"),
    ),
    _Row("first packet through nftables, growth of that ratio with size", 1.2, "x", _growth(_FLAT)),
    _Row("first packet through tc eBPF, growth of that ratio with size", 1.2, "x", _growth(_TC)),
    _Row(
        "simulator",
        10_000,
        "flows/s",
        _speed("simulator, flows"),
        "missed/simulator.md",
        at_least=True,
    ),
    _Row("replay", 50_000, "flows/s", _speed(_REPLAY), "missed/replay.md", at_least=True),
)
