"""Measurements: samples per subject and size, one per round, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

__all__ = ["Cell", "Figures", "middle", "ratio"]


@dataclass(slots=True, kw_only=True)
class Cell:
    """One subject at one size; lists have a sample for each round.

    ``pure``: seconds that need no privilege, by step. ``load``: seconds of the privileged step.
    ``memory``: KiB that the kernel has in use more after it. ``change``: seconds to give one service
    other endpoints. ``first`` and ``established``: nanoseconds per packet. ``size``: bytes of what is
    loaded. ``missing`` says of a measure why it is not there.
    """

    subject: str
    services: int
    pure: dict[str, list[float]] = field(default_factory=dict)
    load: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    change: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    established: list[float] = field(default_factory=list)
    size: int | None = None
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def total(self) -> list[float]:
        """Seconds from the text of the rules to rules in force, per round."""
        steps = [*self.pure.values(), self.load]
        return [sum(samples) for samples in zip(*steps, strict=True)]

    def samples(self, measure: str) -> list[float]:
        """Return the samples of a measure by its name."""
        samples: list[float] = getattr(self, measure)
        return samples


@dataclass(slots=True, kw_only=True)
class Figures:
    """A whole run.

    ``wide``: the loads of the largest size again, with more endpoints per service. ``speeds``: what of
    this project runs how fast, per second, by size.
    """

    machine: dict[str, str]
    options: dict[str, str]
    cells: list[Cell] = field(default_factory=list)
    wide: list[Cell] = field(default_factory=list)
    speeds: dict[str, dict[int, list[float]]] = field(default_factory=dict)

    def cell(self, subject: str, services: int) -> Cell | None:
        """Return one subject's cell at one size."""
        return next((c for c in self.cells if (c.subject, c.services) == (subject, services)), None)

    def subjects(self) -> list[str]:
        """Return the subjects in the order in which they were first met."""
        return list(dict.fromkeys(c.subject for c in self.cells))

    def sizes(self) -> list[int]:
        """Return the numbers of services, ascending."""
        return sorted({c.services for c in self.cells})

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def middle(samples: Sequence[float]) -> float | None:
    """Return the median of the samples; None when there are none."""
    return median(samples) if samples else None


def ratio(samples: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the median over rounds of sample over reference *of the same round*; None without any."""
    pairs = zip(samples, reference, strict=False)
    return middle([a / b for a, b in pairs if b])
