"""The result of a soak, and its page."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.kuberules import Protocol
from tests.lab.traffic.clients import ConnectionResults
from translate.ir import Family

__all__ = ["Sample", "Soaked", "write_soak"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A sample after ``at`` seconds: connections so far, the subject's figures, and memory in KiB.

    ``memory`` is the kernel's for the whole machine, ``resident`` that of the process that loads.
    """

    at: float
    connections: int
    figures: dict[str, int]
    memory: int
    resident: int


@dataclass(slots=True)
class Soaked:
    """The whole result. ``kept`` connections are permanent; ``changed`` and ``replaced`` are durations in
    seconds.
    """

    machine: dict[str, str]
    options: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    loaded_memory: int = 0
    answered: Counter[tuple[str, Protocol, Family]] = field(default_factory=Counter)
    pods: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    failures: list[str] = field(default_factory=list)
    resent: int = 0
    kept: int = 0
    kept_answers: int = 0
    broken: tuple[str, ...] = ()
    changed: list[float] = field(default_factory=list)
    replaced: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    @property
    def connections(self) -> int:
        """The number of short connections."""
        return self.answered.total() + self.errors

    @property
    def failed(self) -> bool:
        """True if anything has failed."""
        return bool(self.errors or self.broken)

    def add(self, place: str, protocol: Protocol, family: Family, answers: ConnectionResults) -> None:
        """Count a round."""
        self.answered[place, protocol, family] += answers.pods.total()
        self.pods += answers.pods
        self.errors += answers.failed
        self.failures = (self.failures + answers.failures)[:50]
        self.resent += answers.resent

    def summary(self) -> str:
        """Return the result as one line."""
        return (
            f"{self.connections:,} connections, {self.errors} errors,"
            f" {len(self.changed)} changes, {len(self.replaced)} replacements"
        )


def write_soak(soaked: Soaked, folder: Path) -> None:
    """Write ``SOAK.md`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SOAK.md").write_text("\n".join(_page(soaked)) + "\n")


def _page(s: Soaked) -> Iterator[str]:
    yield "# Soak"
    yield ""
    yield (
        f"Written by `python -m tests.lab.bench.soak`: {s.seconds / 60:.1f} minutes of real TCP and UDP"
        " connections over IPv4 and IPv6, to cluster IPs and node ports, through the rules of a small"
        " cluster, while endpoints come and go and rules of another shape take the place of those"
        " before. Every answer is checked."
    )
    yield ""
    for name, value in (*s.machine.items(), *s.options.items()):
        yield f"- {name}: {value}"
    yield ""
    yield "| | |"
    yield "| --- | ---: |"
    rate = s.connections / s.seconds if s.seconds else 0.0
    rows = {
        "short connections": f"{s.connections:,} ({rate:,.0f} a second)",
        "short connections that failed": f"{s.errors:,}",
        "TCP segments retransmitted": f"{s.resent:,}",
        "permanent connections": f"{s.kept:,}, {s.kept_answers:,} answers",
        "permanent connections that broke": f"{len(s.broken):,}",
        "changes of endpoints": f"{len(s.changed):,}, of {_middle(s.changed)} s",
        "replacements of the program": f"{len(s.replaced):,}, of {_middle(s.replaced)} s",
        "kernel memory of the rules after the load": f"{s.loaded_memory / 1024:.1f} MiB",
    }
    yield from (f"| {name} | {value} |" for name, value in rows.items())
    yield ""
    yield "A change or replacement is made for both families, one after the other, during the traffic."
    yield ""
    yield "## Answers by client"
    yield ""
    yield "| from | protocol | family | answered |"
    yield "| --- | --- | --- | ---: |"
    for (place, protocol, family), count in sorted(s.answered.items()):
        yield f"| {place} | {protocol} | {family} | {count:,} |"
    yield ""
    yield f"By pod: {', '.join(f'{pod} {count:,}' for pod, count in sorted(s.pods.items()))}."
    yield ""
    yield from _over_time(s)
    if s.failed:
        yield "## What failed"
        yield ""
        yield from (f"- {why}" for why in [*s.broken, *s.failures][:50])
        yield ""


def _over_time(s: Soaked) -> Iterator[str]:
    first, last = s.samples[0], s.samples[-1]
    names = list(dict.fromkeys(name for sample in s.samples for name in sample.figures))
    moving = [n for n in names if any(x.figures.get(n, 0) != first.figures.get(n, 0) for x in s.samples)]
    yield "## Over time"
    yield ""
    yield (
        "Entries of the connection tables of both families, the counters of the programs, kernel memory"
        " of the whole machine, and memory of the loading process with the compiler."
    )
    yield ""
    head = ["seconds", "connections", *moving, "kernel memory, MiB", "loader, MiB"]
    yield f"| {' | '.join(head)} |"
    yield "|" + " ---: |" * len(head)
    for sample in s.samples:
        figures = [f"{sample.figures.get(name, 0):,}" for name in moving]
        memory = [f"{sample.memory / 1024:.1f}", f"{sample.resident / 1024:.1f}"]
        yield f"| {' | '.join((f'{sample.at:.0f}', f'{sample.connections:,}', *figures, *memory))} |"
    yield ""
    still = [f"{name} {last.figures.get(name, 0):,}" for name in names if name not in moving]
    if still:
        yield f"Unchanged during the run: {', '.join(still)}."
        yield ""


def _middle(values: list[float]) -> str:
    return f"{statistics.median(values):.2f}" if values else "-"
