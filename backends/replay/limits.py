"""Resource limits for a library that parses untrusted input, in a child process."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["bounded", "death_by"]

_SECONDS: Final = 120
_BYTES_A_SECOND: Final = 10_000
"""The least speed that is expected of nft.

The slowest known text, kube-proxy's layout of 10,000 services, has some 15 MB and takes 70 s.
"""
_MEMORY: Final = 2 << 30
_MEMORY_A_BYTE: Final = 400
_FILES: Final = 64
_PATIENCE: Final = 30
"""Wall-clock seconds allowed for each second of processor time, because a machine may be busy."""


@contextmanager
def bounded(size: int) -> Iterator[None]:
    """Kill this process if the block needs far too much time or memory for a text of ``size`` bytes.

    Processor time, memory, open files and waiting time (for a FIFO, for DNS) are bounded. After the block the
    old limits hold again. This is for the main thread of a child process; its parent learns from
    :func:`death_by` which limit was exceeded.
    """
    seconds = _SECONDS + size // _BYTES_A_SECOND
    used = resource.getrusage(resource.RUSAGE_SELF)
    opened = max(map(int, os.listdir("/proc/self/fd")))
    room = _virtual_memory() + _MEMORY + _MEMORY_A_BYTE * size
    limits = {
        resource.RLIMIT_CPU: int(used.ru_utime + used.ru_stime) + seconds,
        resource.RLIMIT_AS: room,
        resource.RLIMIT_NOFILE: opened + _FILES,
        resource.RLIMIT_CORE: 0,
    }
    before = {limit: resource.getrlimit(limit) for limit in limits}
    for limit, value in limits.items():
        soft, hard = before[limit]
        bounds = [value, *(limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY)]
        resource.setrlimit(limit, (min(bounds), hard))
    handler = signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds * _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        for limit, bounds_before in before.items():
            resource.setrlimit(limit, bounds_before)


def death_by(status: int | None) -> str | None:
    """Return the limit that a child with this exit status exceeded; None for another cause."""
    return _DEATHS.get(-status) if status is not None else None


_DEATHS: Final = {
    int(signal.SIGXCPU): "it took far more processor time than a ruleset of this size needs",
    int(signal.SIGALRM): "it waited for something for a long time",
}


def _virtual_memory() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()
