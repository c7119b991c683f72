"""The process in the namespace: a TAP node that loads rules, changes them and forwards packets.

All times are taken here, around the measured step only. Packets are written to a TAP device one by one. A
write returns after the stack has processed the packet (``tun_get_user``), so its time includes the write and
the queue of the outgoing device, as it does for plain forwarding. Outgoing packets are read between chunks,
which is not measured.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from backends.model.node import Node
from backends.replay.loader import Loader
from backends.testbed.command import run
from backends.wire.frames import build
from backends.wire.parsing import parse
from tests.lab.unobservednode import UnobservedNode
from translate.bpf import MapChange
from translate.errors import MachineError

__all__ = ["Change", "Flood", "Flooded", "LiveChange", "Load", "Loaded", "StartNode", "kernel_memory"]

_KEPT: Final = ("SUnreclaim", "VmallocUsed", "Percpu")
"""The lines of ``/proc/meminfo`` that count memory of rules. Reclaimable memory is left out: it is caches."""

_CHUNK: Final = 250
"""Packets between two reads of the outgoing packets; fewer than the queue of a device holds."""

_SETTLE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class StartNode:
    """Builds the node in the child. Without a ``loader`` it only forwards."""

    node: Node
    loader: Loader | None

    def __call__(self) -> _Server:
        """Return the server of the node's measurements."""
        return _Server(UnobservedNode(self.node), self.loader)


@dataclass(frozen=True, slots=True)
class Load:
    """Request to load the rules."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The duration of a load in ``seconds``, and the growth of kernel ``memory`` in KiB."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Change:
    """Request to run a tool with ``text`` on its standard input. The answer is its duration in seconds."""

    command: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class LiveChange:
    """Request to change the loaded rules. The answer is the duration in seconds.

    nft commands run through the handle that loaded the rules; map changes go to the maps of the tc program.
    """

    change: str | tuple[MapChange, ...]


@dataclass(frozen=True, slots=True)
class Flood:
    """Request to send packets into ``device`` until all are sent or ``seconds`` have passed.

    With ``warm``, all packets are sent once and answered before the measurement. Otherwise all connections
    are deleted first.
    """

    device: str
    packets: tuple[bytes, ...]
    seconds: float
    repeat: int = 1
    warm: bool = False


@dataclass(frozen=True, slots=True)
class Flooded:
    """The numbers of packets sent and of packets that left the node, and the duration in seconds."""

    sent: int
    left: int
    seconds: float


@dataclass(slots=True)
class _Server:
    """Serves the requests in the child."""

    tap: UnobservedNode
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
        """Close the loader."""
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
            for sighting in tap.drain():
                if sighting.out is not None:
                    tap.flood(sighting.out, (_answer(sighting.data),))
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


def _answer(datagram: bytes) -> bytes:
    """Return the answer to a UDP datagram."""
    packet = parse(datagram).packet
    return build(replace(packet, src=packet.dst, dst=packet.src, sport=packet.dport, dport=packet.sport))


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
    """Return the kernel memory in use, without caches, in KiB."""
    lines = (line.partition(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(rest.split()[0]) for name, _, rest in lines if name in _KEPT)


def _settled_memory() -> int:
    """Return the kernel memory in use after temporary memory is freed.

    Namespaces end in the background. The memory of a transaction, and hash tables that were too small, are
    freed after an RCU grace period, some tens of milliseconds later.
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
