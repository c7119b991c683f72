"""How far a replay is: bars on a terminal, and nothing elsewhere, where it would only be noise."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from harness.replay import Progress
from harness.report.terminal import plain, unfiltered

__all__ = ["progress"]


@contextmanager
def progress(stream: TextIO) -> Iterator[Progress]:
    """Yield what to call with a backend's name, flows done and flows in all."""
    if not stream.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    lock = threading.Lock()
    name_column = TextColumn("{task.description}", markup=False)
    columns = (name_column, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=unfiltered(stream)), transient=True) as bars:
        tasks = {}

        def tell(name: str, done: int, total: int) -> None:
            with lock:
                if name not in tasks:
                    tasks[name] = bars.add_task(plain(name), total=total)
                bars.update(tasks[name], completed=done, total=total)

        yield tell


def _silent(name: str, done: int, total: int) -> None:
    """Show nothing."""
