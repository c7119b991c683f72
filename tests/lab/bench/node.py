"""The process in the namespace: a TAP node that loads rules, changes them, and is flooded with packets.

All times are taken here, around the step alone. Packets are written to a TAP one by one; each write runs
the stack to the end (``tun_get_user``), so that the time of a packet is that of its whole way, with the
write itself and the queue of the device at the other end, which plain forwarding has, too. What came out
is read between the chunks, unmeasured.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from backends.model.node import Node
from backends.replay.loader import Loader
from backends.testbed.command import run
from backends.testbed.tapnode import TapNode
from translate.bpf import MapChange
from translate.errors import MachineError

__all__ = ["Change", "Flood", "Flooded", "LiveChange", "Load", "Loaded", "StartNode", "kernel_memory"]

_KEPT: Final = ("SUnreclaim", "VmallocUsed", "Percpu")
"""Kernel memory of rules; caches, which the tools fill, are reclaimable."""

_CHUNK: Final = 250
"""Packets between two looks at what came out; fewer than the queue of a device holds."""

_SETTLE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class StartNode:
    """Builds the node, in the child. ``loader`` None: plain forwarding."""

    node: Node
    loader: Loader | None

    def __call__(self) -> _Server:
        """Do so, and serve its measurements."""
        tap = TapNode(self.node)
        tap.stop_watching()
        return _Server(tap, self.loader)


@dataclass(frozen=True, slots=True)
class Load:
    """Asks to load the rules."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """``seconds`` that it took, and ``memory`` in KiB that the kernel keeps in use since."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Change:
    """Asks to run a tool with ``text`` on its input; answered with the seconds that it took."""

    command: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class LiveChange:
    """Asks the loader to change what it loaded, in the form that it takes; answered as :class:`Change` is.

    nft commands run through the handle that loaded the rules, steps go into the maps of the program.
    """

    change: str | tuple[MapChange, ...]


@dataclass(frozen=True, slots=True)
class Flood:
    """Asks to send packets into ``device`` until all are sent or ``seconds`` are over.

    ``warm`` sends all of them once before, unmeasured; otherwise connections are forgotten first.
    """

    device: str
    packets: tuple[bytes, ...]
    seconds: float
    repeat: int = 1
    warm: bool = False


@dataclass(frozen=True, slots=True)
class Flooded:
    """The numbers of packets ``sent`` and of those that left the node again, and the seconds."""

    sent: int
    left: int
    seconds: float


@dataclass(slots=True)
class _Server:
    """Serves the requests, in the child."""

    tap: TapNode
    loader: Loader | None

    def __call__(self, message: Any) -> Any:
        match message:
            case Load():
                return self._load()
            case Change(command, text):
                return _timed_run(command, text)
            case LiveChange(change):
                return self._live_change(change)
            case Flood():
                return self._flood(message)
        raise TypeError(f"no such request: {message!r}")

    def close(self) -> None:
        """Let the loader go."""
        if self.loader is not None:
            self.loader.close()

    def _load(self) -> Loaded:
        before = _settled_memory()
        began = time.perf_counter()
        if self.loader is not None:
            self.loader.load(self.tap)
        spent = time.perf_counter() - began
        after = _settled_memory()
        self.tap.apply_sysctls()
        return Loaded(spent, after - before)

    def _live_change(self, change: str | tuple[MapChange, ...]) -> float:
        if self.loader is None:
            raise TypeError("there are no rules")
        began = time.perf_counter()
        self.loader.change(change)
        return time.perf_counter() - began

    def _flood(self, flood: Flood) -> Flooded:
        tap = self.tap
        if flood.warm:
            tap.flood(flood.device, flood.packets)
        elif self.loader is not None:
            self.loader.forget(tap)
        packets = flood.packets * flood.repeat
        sent, left, spent = 0, 0, 0.0
        tap.drain()
        while sent < len(packets) and spent < flood.seconds:
            chunk = packets[sent : sent + _CHUNK]
            spent += tap.flood(flood.device, chunk)
            sent += len(chunk)
            left += len(tap.drain())
        return Flooded(sent, left, spent)


def _timed_run(command: tuple[str, ...], text: str) -> float:
    folder = tempfile.mkdtemp(prefix="nfparity-")
    try:
        began = time.perf_counter()
        done = run(command, text, environment={"XTABLES_LOCKFILE": str(Path(folder, "lock"))})
        spent = time.perf_counter() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise MachineError(f"{command[0]} does not take the change: {done.stderr.strip()[:500]}")
    return spent


def kernel_memory() -> int:
    """Return what the kernel keeps in use, in KiB, caches left out."""
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(rest.split()[0]) for name, _, rest in lines if name in _KEPT)


def _settled_memory() -> int:
    """The memory in use once what is not needed any more is freed.

    Namespaces end in the background, and what a load alone needed (the transaction, hash tables that were
    too small) goes when RCU allows it, some tens of milliseconds later.
    """
    deadline = time.monotonic() + _SETTLE_SECONDS
    last = kernel_memory()
    while time.monotonic() < deadline:
        time.sleep(0.05)
        now = kernel_memory()
        if abs(now - last) < 64:
            return now
        last = now
    return last
