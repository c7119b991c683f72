"""A run of the bench: all sizes and rounds, with the subjects side by side.

In each round every subject is measured once, and each round begins with another subject. So other load of the
machine falls on all subjects. Ratios are taken within a round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from backends.model.packet import Packet
from backends.replay.worker import Worker
from backends.wire.frames import build
from tests.lab.bench.figures import Cell
from tests.lab.bench.node import Flood, Flooded, Load, Loaded, StartNode
from tests.lab.bench.subjects import AnyChange, Material, NotMeasured, Ready, Subject
from translate.collector import present_objects_kept
from translate.errors import MachineError, NfparityError
from translate.ir import Protocol

__all__ = ["Limits", "Run", "time_limit"]

_INSIDE = "cni0"
_CLIENTS = 50
_WARM = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The extent of a run: numbers of rounds, the maximum of ``packets`` per sample, and times in seconds.

    ``load_rounds`` is the number of loads, each into a fresh namespace. ``rounds`` is the number of samples
    of changes and packets; with 0 only loads are measured. ``load_seconds`` is the time limit for all steps
    of one load; a subject that exceeds it is not measured at larger sizes. ``sample_seconds`` is the time for
    the packets of one sample. A sample of changes is the mean of those within ``change_sample_seconds``, at
    least of one pair. No changes are made after ``change_seconds``.
    """

    load_rounds: int = 3
    rounds: int = 5
    packets: int = 10_000
    load_seconds: float = 120.0
    sample_seconds: float = 0.5
    change_sample_seconds: float = 0.1
    change_seconds: float = 20.0


def _say(text: str) -> None:
    """Discard the progress message."""


@dataclass(slots=True)
class Run:
    """One run over growing sizes. ``cells`` holds the measurements so far."""

    subjects: Sequence[Subject]
    limits: Limits
    say: Callable[[str], None] = _say
    cells: list[Cell] = field(default_factory=list)
    _too_slow: dict[str, int] = field(default_factory=dict)

    def size(self, material: Material, services: int) -> None:
        """Measure every subject at one size."""
        measured = {s.name: Cell(subject=s.name, services=services) for s in self.subjects}
        self.cells += measured.values()
        with ExitStack() as stack:
            nodes: dict[str, Worker] = {}
            for number in range(self.limits.load_rounds):
                last = number == self.limits.load_rounds - 1
                for subject in _turned(self.subjects, number):
                    cell = measured[subject.name]
                    loaded = self._loaded(subject, material, cell)
                    if loaded is None:
                        continue
                    worker, ready = loaded
                    if not last:
                        worker.close()
                        continue
                    nodes[subject.name] = stack.enter_context(worker)
                    if self.limits.rounds:
                        # Before the next subject: the objects of this translation would slow down the others.
                        self._changes(self._pair(subject, material, cell, ready), cell, worker)
            if not self.limits.rounds:
                return
            packets = _Packets.of(material)
            for number in range(self.limits.rounds):
                for subject in _turned(self.subjects, number):
                    self._packets(packets, measured[subject.name], nodes.get(subject.name))

    # Loading

    def _loaded(self, subject: Subject, material: Material, cell: Cell) -> tuple[Worker, Ready] | None:
        """Load once into a fresh namespace, which the returned worker holds."""
        if "load" in cell.missing:
            return None
        if (before := self._too_slow.get(subject.name)) is not None:
            cell.missing["load"] = f"over {self.limits.load_seconds:g} s at {before} services"
            return None
        self.say(f"{cell.services} services: {subject.name}")
        worker = None
        try:
            with present_objects_kept():
                ready = subject.prepare(material)
            worker = Worker(StartNode(material.cluster.node, ready.loader))
            spent = sum(ready.pure.values())
            with time_limit(worker, self.limits.load_seconds - spent) as expired:
                try:
                    loaded: Loaded | None = worker.ask(Load())
                except MachineError:
                    if not expired.is_set():
                        raise
                    loaded = None
            # An answer can arrive between the limit and the timer.
            if loaded is None or expired.is_set() or spent + loaded.seconds > self.limits.load_seconds:
                worker.kill()
                self._too_slow[subject.name] = cell.services
                cell.missing["load"] = f"over {self.limits.load_seconds:g} s"
                return None
        except NfparityError as e:
            if worker is not None:
                worker.kill()
            cell.missing["load"] = _reason(e)
            return None
        for step, seconds in ready.pure.items():
            cell.pure.setdefault(step, []).append(seconds)
        cell.load.append(loaded.seconds)
        cell.memory.append(loaded.memory)
        cell.size = ready.size
        return worker, ready

    # Changing

    def _pair(
        self, subject: Subject, material: Material, cell: Cell, loaded: Ready
    ) -> tuple[AnyChange, AnyChange] | None:
        try:
            return subject.changes(material, loaded)
        except NotMeasured as e:
            cell.missing["change"] = str(e)
            return None

    def _changes(self, pair: tuple[AnyChange, AnyChange] | None, cell: Cell, node: Worker) -> None:
        if pair is None:
            return
        spent = 0.0
        try:
            for number in range(self.limits.rounds + 1):
                took: list[float] = []
                while sum(took) < self.limits.change_sample_seconds:
                    took += (node.ask(change) for change in pair)
                if number:  # the first ones fill the caches of a handle, and of the machine
                    cell.change.append(sum(took) / len(took))
                spent += sum(took)
                if spent > self.limits.change_seconds and cell.change:
                    break
        except MachineError as e:
            cell.missing["change"] = _reason(e)

    # Packets

    def _packets(self, packets: _Packets, cell: Cell, node: Worker | None) -> None:
        if node is None or "first" in cell.missing:
            return
        seconds = self.limits.sample_seconds
        first = packets.first(self.limits.packets)
        samples = (
            ("first", Flood(_INSIDE, first, seconds)),
            (
                "established",
                Flood(_INSIDE, first[:_WARM], seconds, max(1, self.limits.packets // _WARM), warm=True),
            ),
        )
        for name, flood in samples:
            try:
                flooded: Flooded = node.ask(flood)
            except MachineError as e:
                cell.missing["first"] = cell.missing["established"] = _reason(e)
                return
            if flooded.left < flooded.sent:
                lost = f"{flooded.sent - flooded.left} of {flooded.sent} packets did not leave the node"
                cell.missing["first"] = cell.missing["established"] = lost
                return
            cell.samples(name).append(flooded.seconds / flooded.sent * 1e9)


@dataclass(frozen=True, slots=True)
class _Packets:
    """UDP packets from pods of the node to the last service, each of a connection of its own."""

    base: Packet

    @classmethod
    def of(cls, material: Material) -> _Packets:
        cluster, service = material.cluster, material.last
        return cls(
            Packet(
                family=cluster.family,
                src=cluster.pods.low + 100,
                dst=service.cluster_ip,
                proto=Protocol.UDP,
                sport=0,
                dport=service.port,
                payload=b"nfparity",
            )
        )

    def first(self, count: int) -> tuple[bytes, ...]:
        base = self.base
        return tuple(
            build(replace(base, src=base.src + n % _CLIENTS, sport=10_000 + n // _CLIENTS))
            for n in range(count)
        )


def _turned(subjects: Sequence[Subject], number: int) -> Sequence[Subject]:
    at = number % len(subjects)
    return (*subjects[at:], *subjects[:at])


@contextmanager
def time_limit(worker: Worker, seconds: float) -> Iterator[threading.Event]:
    """End the worker's process after ``seconds``. The event is set if that happens.

    The worker's socket stays open, because the caller's thread may be about to write to it.
    """
    expired = threading.Event()

    def end() -> None:
        expired.set()
        worker.end()

    timer = threading.Timer(max(seconds, 0.0), end)
    timer.start()
    try:
        yield expired
    finally:
        timer.cancel()
        timer.join()


def _reason(error: NfparityError) -> str:
    """Return the first line of the error, and the number of further lines."""
    lines = str(error).strip().splitlines()
    more = f" (and {len(lines) - 1} lines more)" if len(lines) > 1 else ""
    return lines[0][:160] + more
