"""Measurements: samples per subject and size, one per round, and their summaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from tests.lab.bench.verification import CommandCost

__all__ = ["Cell", "Figures", "middle", "ratio"]


@dataclass(slots=True, kw_only=True)
class Cell:
    """One subject at one size; lists have a sample for each round.

    ``pure`` has the seconds of each unprivileged step, and ``load`` those of the privileged step. ``memory``
    is the growth of kernel memory in KiB. ``change`` is the time to change the endpoints of one service, in
    seconds. ``first`` and ``established`` are nanoseconds per packet. ``size`` is the size of the loaded text
    in bytes. ``missing`` has the reason for each measure that is missing.
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
        """Seconds from the text of the rules to the loaded rules, per round."""
        steps = [*self.pure.values(), self.load]
        return [sum(samples) for samples in zip(*steps, strict=True)]

    def samples(self, measure: str) -> list[float]:
        """Return the samples of a measure by its name."""
        samples: list[float] = getattr(self, measure)
        return samples


@dataclass(slots=True, kw_only=True)
class Figures:
    """A whole run.

    ``wide`` has the loads of the largest size with more endpoints per service. ``speeds`` has the speeds of
    nfparity's own parts, per second, by name and size. ``commands`` has the costs of verification.
    """

    machine: dict[str, str]
    options: dict[str, str]
    cells: list[Cell] = field(default_factory=list)
    wide: list[Cell] = field(default_factory=list)
    speeds: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    commands: list[CommandCost] = field(default_factory=list)

    def cell(self, subject: str, services: int) -> Cell | None:
        """Return the cell of a subject at a size, or None."""
        return next((c for c in self.cells if (c.subject, c.services) == (subject, services)), None)

    def subjects(self) -> list[str]:
        """Return the subjects in the order of their first cells."""
        return list(dict.fromkeys(c.subject for c in self.cells))

    def sizes(self) -> list[int]:
        """Return the numbers of services, ascending."""
        return sorted({c.services for c in self.cells})

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self)


def middle(samples: Sequence[float]) -> float | None:
    """Return the median of the samples; None if there are none."""
    return median(samples) if samples else None


def ratio(samples: Sequence[float], reference: Sequence[float]) -> float | None:
    """Return the median of the ratios of samples to the reference of their round, or None."""
    pairs = zip(samples, reference, strict=False)
    return middle([a / b for a, b in pairs if b])
