"""A loaded node, for the harness's process: flows in, results out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from backends.model.flow import Flow, Repeated
from backends.model.node import Node
from backends.model.outcome import FlowResult
from backends.model.packet import Packet
from backends.replay.loader import Loader, RuleId
from backends.replay.pipe import pack_flows, pack_results, unpack_flows, unpack_results
from backends.replay.replayer import Replayer
from backends.replay.sampler import Destination, sample
from backends.replay.successive import lent_worker
from backends.replay.worker import Worker
from backends.testbed.suppress_stack_rst import suppress_stack_rst
from backends.testbed.sysctls import set_accounting
from backends.testbed.tapnode import TapNode
from translate.dataclass import dataclass, field
from translate.errors import Note
from translate.ir import Family

__all__ = ["KernelSession", "open_session"]

_BATCH_SECONDS: Final = 0.1
_BATCH_LIMIT: Final = 1024


@dataclass(frozen=True, slots=True)
class _Replay:
    flows: bytes


@dataclass(frozen=True, slots=True)
class _Sample:
    packet: Packet
    entry: str
    times: int


@dataclass(frozen=True, slots=True)
class _Count:
    """A request for the rule counters."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A request for other rules; ``change`` is the argument of ``Loader.change``."""

    change: Any


@dataclass(frozen=True, slots=True)
class _Start:
    """Builds the node and loads the rules, in the child."""

    node: Node
    loader: Loader

    def __call__(self) -> _Server:
        tap = TapNode(self.node, self.loader.family)
        suppress_stack_rst(self.loader.reset_fallback, self.loader.family)
        self.loader.load(tap)
        tap.apply_sysctls()
        if self.loader.counts:
            set_accounting()
        return _Server(Replayer(tap, self.loader))


@dataclass(slots=True)
class _Server:
    """Serves a session's requests, in the child."""

    replayer: Replayer

    def __call__(self, message: Any) -> Any:
        match message:
            case _Replay(flows):
                return pack_results(self.replayer.replay(unpack_flows(flows)))
            case _Sample(packet, entry, times):
                replayer = self.replayer
                return sample(replayer.tap, replayer.loader, packet, entry, times)
            case _Change(change):
                return self.replayer.loader.change(change)
            case _Count():
                return dict(self.replayer.loader.counters())
        raise TypeError(f"no such request: {message!r}")

    def close(self) -> None:
        self.replayer.tap.close()
        self.replayer.loader.close()


@dataclass(slots=True)
class KernelSession:
    """Replays flows on the node; see :func:`open_session`."""

    _worker: Worker = field(repr=False)
    _family: Family
    limits: tuple[Note, ...] = ()
    """Limits of the translation that iptables does not have."""

    @property
    def pid(self) -> int:
        """The process that holds the node, for ``nsenter --net=/proc/PID/ns/net``."""
        return self._worker.pid

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        """Run the flows in order and yield one result each, in batches of about a tenth of a second.

        Raises MachineError if the machine fails, UnsupportedError for a packet that cannot be sent.
        """
        size = 1
        remaining = iter(flows)
        while batch := tuple(itertools.islice(remaining, size)):
            began = time.monotonic()
            results = unpack_results(self._worker.ask(_Replay(pack_flows(batch, self._family))))
            spent = time.monotonic() - began
            yield from results
            if spent > 2 * _BATCH_SECONDS:
                size = max(1, size // 2)
            elif spent < _BATCH_SECONDS / 2:
                size = min(_BATCH_LIMIT, size * 2)

    def sample(self, packet: Packet, entry: str, times: int) -> Mapping[Destination | None, int]:
        """Return the destinations of ``times`` connections that begin with ``packet``; see :func:`sample`."""
        destinations: dict[Destination | None, int] = self._worker.ask(_Sample(packet, entry, times))
        return destinations

    def change(self, change: Any) -> None:
        """Change the loaded rules; see :meth:`Loader.change`."""
        self._worker.ask(_Change(change))

    def counters(self) -> Mapping[RuleId, int]:
        """Return the number of packets that each rule has matched since it was loaded, if counted."""
        counters: dict[RuleId, int] = self._worker.ask(_Count())
        return counters


@contextmanager
def open_session(node: Node, loader: Loader, *, limits: tuple[Note, ...] = ()) -> Iterator[KernelSession]:
    """Build ``node`` in a private namespace, load rules with ``loader``, and yield a session.

    ``limits`` are the notes of the session. The namespace and everything in it end with the context. Raises
    the errors of :class:`TapNode` and of the loader.
    """
    kind = type(loader).__name__ if loader.leaves_nothing else None
    with lent_worker(kind, _Start(node, loader)) as worker:
        yield KernelSession(worker, loader.family, limits)
