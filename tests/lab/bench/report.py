"""The page of results: tables in Markdown, plots, and the data as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.lab.bench.figures import Cell, Figures, middle, ratio
from tests.lab.bench.plots import plot
from tests.lab.bench.subjects import PLAIN
from tests.lab.bench.targets import AT, outcomes
from tests.lab.bench.verification import command_table

__all__ = ["write_report"]

_LEGACY: Final = "iptables-legacy"


@dataclass(frozen=True, slots=True)
class _Measure:
    """One table and its plot. Ratios are relative to the subject ``base``; None means no ratios."""

    name: str
    title: str
    unit: str
    scale: float
    base: str | None
    words: str


_MEASURES: Final = (
    _Measure(
        "total",
        "Load, end to end",
        "s",
        1.0,
        _LEGACY,
        "From the text of the rules to loaded rules: reading, translating and writing, and the privileged"
        " step. The time that kube-proxy needs to write the text is not counted.",
    ),
    _Measure(
        "load",
        "Load, the privileged step alone",
        "s",
        1.0,
        _LEGACY,
        "The restore command, libnftables' transaction, or compiling, verifying, filling and attaching.",
    ),
    _Measure(
        "change",
        "Other endpoints for one service",
        "ms",
        1e3,
        _LEGACY,
        "An endpoint is removed and added again; the figure is half of both times. The iptables tools are"
        " started for each change, as kube-proxy does. nfparity applies the output of `translate --against`"
        " through the handle that loaded the rules, or to the maps. The translation of the new rules is not"
        " counted; it takes as long as that of the old rules. Before nfparity deletes map entries, it waits"
        " for the packets that are being processed. A sample is the mean of the changes in a tenth of a"
        " second, at least of one pair. The first sample after a load fills caches and is not counted.",
    ),
    _Measure(
        "memory",
        "Kernel memory",
        "MiB",
        1 / 1024,
        None,
        "The growth of unreclaimable slab, vmalloc and per-CPU memory of the whole machine, after the load"
        " has ended and its temporary memory is freed. Values below a few MiB are noise.",
    ),
    _Measure(
        "first",
        "First packet of a connection to the last service",
        "ns",
        1.0,
        PLAIN,
        "CPU time from the write to one TAP device until the packet is in the queue of another. The client is"
        " a pod of the node.",
    ),
    _Measure(
        "established",
        "Later packets of 50 connections",
        "ns",
        1.0,
        PLAIN,
        "The same for packets of connections that have been answered; UDP in one direction.",
    ),
)


def write_report(figures: Figures, folder: Path) -> None:
    """Write ``RESULTS.md``, ``results.json`` and one SVG per measure into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [*_head(figures, folder), *_targets(figures, folder), *command_table(figures.commands)]
    for measure in _MEASURES:
        picture = f"{measure.name}.svg"
        (folder / picture).write_text(_plot(figures, measure), encoding="utf-8")
        lines += _section(figures, measure, picture)
    lines += [*_wide(figures), *_steps(figures), *_sizes(figures), *_speeds(figures), *_missing(figures)]
    (folder / "RESULTS.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = json.dumps(figures.plain(), indent=1)
    (folder / "results.json").write_text(data + "\n", encoding="utf-8")


def _head(figures: Figures, folder: Path) -> Iterator[str]:
    yield "# Cost of loading, changing and forwarding, by number of services"
    yield ""
    yield (
        "Written by `make bench`. In each round every subject is measured once, with the same cluster of UDP"
        " services of type ClusterIP, in a network namespace of its own. A figure is the median of the"
        " rounds. The figure in brackets is the median of the ratios within a round. Times depend on the"
        " machine and on its other load: compare lines and columns of one run, not different runs."
    )
    yield ""
    if (folder / "SOAK.md").exists():
        yield "[SOAK.md](SOAK.md) has the results of ten minutes of real connections."
        yield ""
    for name, value in (*figures.machine.items(), *figures.options.items()):
        yield f"- {name}: {value}"
    yield ""


def _targets(figures: Figures, folder: Path) -> Iterator[str]:
    rows = list(outcomes(figures))
    if not rows:
        return
    yield f"## Targets and results at {AT:,} services"
    yield ""
    yield "| | target | result | |"
    yield "| --- | ---: | ---: | --- |"
    for row in rows:
        bound = "at least" if row.at_least else "at most"
        result = "reached" if row.reached else "missed"
        if not row.reached and row.profile is not None and (folder / row.profile).exists():
            result = f"missed: [profile]({row.profile})"
        limit, value = (f"{_number(n)} {row.unit}" for n in (row.limit, row.value))
        yield f"| {row.name} | {bound} {limit} | {value} | {result} |"
    yield ""


def _section(figures: Figures, measure: _Measure, picture: str) -> Iterator[str]:
    yield f"## {measure.title}"
    yield ""
    base = "" if measure.base is None else f" In brackets: relative to {measure.base}."
    yield f"{measure.words} In {measure.unit}.{base}"
    yield ""
    yield from _table(figures, lambda cell: _shown(figures, measure, cell))
    yield ""
    yield f"![{measure.title}]({picture})"
    yield ""


def _table(figures: Figures, show: Callable[[Cell], str]) -> Iterator[str]:
    sizes = figures.sizes()
    yield f"| | {' | '.join(f'{n:,}' for n in sizes)} |"
    yield "| --- |" + " ---: |" * len(sizes)
    for subject in figures.subjects():
        cells = [figures.cell(subject, n) for n in sizes]
        shown = ["-" if c is None else show(c) for c in cells]
        if any(s != "-" for s in shown):
            yield f"| {subject} | {' | '.join(shown)} |"


def _shown(figures: Figures, measure: _Measure, cell: Cell) -> str:
    samples = cell.samples(measure.name)
    value = middle(samples)
    if value is None or (cell.subject == PLAIN and measure.base != PLAIN):
        return "-"
    text = _number(value * measure.scale)
    base = None if measure.base is None else figures.cell(measure.base, cell.services)
    times = None if base is None else ratio(samples, base.samples(measure.name))
    return text if times is None else f"{text} (x{_number(times)})"


def _number(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def _plot(figures: Figures, measure: _Measure) -> str:
    lines: dict[str, Sequence[tuple[float, float]]] = {}
    for subject in figures.subjects():
        points = []
        for n in figures.sizes():
            cell = figures.cell(subject, n)
            value = None if cell is None else middle(cell.samples(measure.name))
            if value is not None and (subject != PLAIN or measure.base == PLAIN):
                points.append((float(n), value * measure.scale))
        lines[subject] = points
    return plot(measure.title, measure.unit, lines)


def _wide(figures: Figures) -> Iterator[str]:
    """Yield the loads of the largest size with more endpoints."""
    if not figures.wide:
        return
    yield f"## Load of a wide cluster of {figures.wide[0].services:,} services"
    yield ""
    yield f"The same with more endpoints per service (see the top). In brackets: relative to {_LEGACY}."
    yield ""
    yield "| | end to end, s | the privileged step, s | kernel memory, MiB | text, KiB |"
    yield "| --- |" + " ---: |" * 4
    legacy = next((c for c in figures.wide if c.subject == _LEGACY), None)
    for cell in figures.wide:
        shown = []
        for name in ("total", "load"):
            samples = cell.samples(name)
            times = None if legacy is None else ratio(samples, legacy.samples(name))
            value = middle(samples)
            text = "-" if value is None else _number(value)
            shown.append(text if times is None else f"{text} (x{_number(times)})")
        memory = middle(cell.memory)
        shown.append("-" if memory is None else _number(memory / 1024))
        shown.append("-" if cell.size is None else _number(cell.size / 1024))
        yield f"| {cell.subject} | {' | '.join(shown)} |"
    yield ""


def _steps(figures: Figures) -> Iterator[str]:
    """Yield the times of the steps of each translation at the largest size."""
    most = figures.sizes()[-1]
    cells = [c for c in figures.cells if c.services == most and c.pure and c.load]
    steps = list(dict.fromkeys(step for c in cells for step in c.pure))
    yield f"## The steps of a translation, at {most:,} services"
    yield ""
    yield "In s. Only loading needs privileges."
    yield ""
    yield f"| | {' | '.join(steps)} | load |"
    yield "| --- |" + " ---: |" * (len(steps) + 1)
    for cell in cells:
        values = [middle(cell.pure.get(step, ())) for step in steps]
        shown = ["-" if v is None else _number(v) for v in (*values, middle(cell.load))]
        yield f"| {cell.subject} | {' | '.join(shown)} |"
    yield ""


def _sizes(figures: Figures) -> Iterator[str]:
    yield "## Size of the loaded rules"
    yield ""
    yield "In KiB of text. For tc eBPF it is the text of the program without the contents of its maps."
    yield ""
    yield from _table(figures, lambda c: _number(c.size / 1024) if c.size else "-")
    yield ""


def _speeds(figures: Figures) -> Iterator[str]:
    if not figures.speeds:
        return
    sizes = sorted({n for by_size in figures.speeds.values() for n in by_size})
    yield "## Speed of nfparity's own parts"
    yield ""
    yield (
        "Per second of elapsed time for the reader, and per second of CPU time for the others. The CPU time"
        " of a replay includes both processes and the kernel. A flow is the first packet to a service. The"
        " simulator follows one path for each endpoint, and prepares the rules of a service at its first"
        " flow. A replay reads whole packets; sampling, which measures the shares of endpoints, reads only"
        " the destination."
    )
    yield ""
    yield f"| | {' | '.join(f'{n:,}' for n in sizes)} |"
    yield "| --- |" + " ---: |" * len(sizes)
    for name, by_size in figures.speeds.items():
        values = [middle(by_size.get(n, ())) for n in sizes]
        yield f"| {name} | {' | '.join('-' if v is None else _number(v) for v in values)} |"
    yield ""


def _missing(figures: Figures) -> Iterator[str]:
    """Yield the reasons for missing figures, each once with its sizes."""
    reasons: dict[tuple[str, str, str], list[int]] = {}
    for cell in figures.cells:
        for measure, why in cell.missing.items():
            if cell.subject != PLAIN:
                reasons.setdefault((cell.subject, measure, why), []).append(cell.services)
    if not reasons:
        return
    yield "## Not measured"
    yield ""
    for (subject, measure, why), sizes in reasons.items():
        yield f"- {subject}, {measure}, at {', '.join(f'{n:,}' for n in sizes)} services: {why}"
