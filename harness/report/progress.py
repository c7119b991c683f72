"""Progress of an operation: bars on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, repeat
from typing import Final, TextIO

from harness.diff.replay import Progress
from harness.report.terminal import plain, unfiltered

__all__ = ["PlainProgress", "print_lines", "progress"]

_FIRST: Final = 1.0
"""Seconds until the first line without a terminal; a shorter operation prints none."""

_INTERVAL: Final = 15.0
"""Seconds between two further lines without a terminal."""

_ENOUGH: Final = 0.03
"""The share of the work that must be done before the remaining time is estimated."""


_BAR: Final = 12
"""The width of a bar: with the longest name of a backend, a line has 80 columns."""


@contextmanager
def progress(stream: TextIO, backends: Sequence[str] = (), *, unit: str = "flows") -> Iterator[Progress]:
    """Yield a function that takes a name and the numbers of its finished and of all its flows.

    The names are those of backends; ``backends`` are all that will run, so that the estimate of the
    remaining time includes those that have not begun yet. ``unit`` is what is counted, in the plural.
    """
    if stream.isatty():
        with _bars(stream, unit) as tell:
            yield tell
        return
    plain = PlainProgress(backends, unit=unit)
    with _lines(stream, plain):
        yield plain.tell


class PlainProgress:
    """The state of an operation as one line of text. Threads may share it."""

    def __init__(self, backends: Sequence[str] = (), *, unit: str = "flows") -> None:
        self._lock = threading.Lock()
        self._unit = unit
        self._expected = tuple(backends)
        self._counts: dict[str, tuple[int, int]] = {}

    def tell(self, name: str, done: int, total: int) -> None:
        """Record that ``name`` has finished ``done`` of ``total``."""
        with self._lock:
            self._counts[name] = (done, total)

    def line(self, elapsed: float) -> str:
        """Return the line to print ``elapsed`` seconds after the start."""
        with self._lock:
            counts = dict(self._counts)
        if not counts:
            return f"no {self._unit} done yet, {_span(elapsed)} so far"
        parts = [f"{name} {done}/{total}" for name, (done, total) in counts.items()]
        rate = _rate(sum(done for done, _ in counts.values()), elapsed, self._unit)
        left = self._remaining(counts, elapsed)
        return f"{', '.join(parts)} {self._unit}; {rate}, {_span(elapsed)} so far{left}"

    def _remaining(self, counts: dict[str, tuple[int, int]], elapsed: float) -> str:
        most = max(total for _, total in counts.values())
        names = self._expected or tuple(counts)
        work = sum(counts.get(name, (0, most))[1] for name in names)
        done = sum(counts.get(name, (0, most))[0] for name in names)
        if not work or done < _ENOUGH * work:
            return ""
        return f", about {_span(elapsed * (work - done) / done)} left"


def _rate(done: int, seconds: float, unit: str) -> str:
    """Return the number done in a second, or in a minute if it is small."""
    rate = done / seconds if seconds else 0.0
    if 0 < rate < 0.1:
        return f"{60 * rate:.1f} {unit}/min"
    return f"{rate:.0f} {unit}/s" if rate >= 10 else f"{rate:.1f} {unit}/s"


def _span(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60:02} s"


@contextmanager
def _lines(stream: TextIO, plain: PlainProgress) -> Iterator[None]:
    over = threading.Event()
    printer = threading.Thread(
        target=print_lines, args=(stream, plain, over.wait, time.monotonic), name="progress", daemon=True
    )
    printer.start()
    try:
        yield
    finally:
        over.set()
        printer.join()


def print_lines(
    stream: TextIO, plain: PlainProgress, wait: Callable[[float], bool], now: Callable[[], float]
) -> None:
    """Print a line after a second, and one every 15 seconds after it.

    ``wait`` waits for a number of seconds and returns whether the operation is over; ``now`` returns the
    time in seconds.
    """
    began = now()
    for seconds in chain((_FIRST,), repeat(_INTERVAL)):
        if wait(seconds):
            return
        with suppress(OSError, ValueError):  # the reader has closed the stream
            print(f"nfparity: {plain.line(now() - began)}", file=stream, flush=True)


@contextmanager
def _bars(stream: TextIO, unit: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    lock = threading.Lock()
    name_column = TextColumn("{task.description}", markup=False)
    rate_column = TextColumn("{task.fields[rate]}", markup=False)
    bar = BarColumn(bar_width=_BAR)
    columns = (
        *(name_column, bar, MofNCompleteColumn(), rate_column),
        *(TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()),
    )
    began = time.monotonic()
    with Progress(*columns, console=Console(file=unfiltered(stream)), transient=True) as bars:
        tasks = {}

        def tell(name: str, done: int, total: int) -> None:
            with lock:
                if name not in tasks:
                    tasks[name] = bars.add_task(plain(name), total=total, rate="")
                rate = _rate(done, time.monotonic() - began, unit)
                bars.update(tasks[name], completed=done, total=total, rate=rate)

        yield tell
