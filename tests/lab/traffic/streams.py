"""Permanent connections: in each round every connection sends a line, which its first pod must answer."""

from __future__ import annotations

import select
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Final

from tests.lab.kuberules import Protocol
from tests.lab.traffic.clients import source_of
from tests.lab.traffic.host import Host, Request
from translate.ir import Family

__all__ = ["BeginStreams", "CountAnswers", "EndStreams", "Kept"]

_KEPT: Final = "streams"
_SECONDS: Final = 10.0
"""The time limit for an answer; TCP sends a lost segment again long before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginStreams(Request):
    """Opens ``count`` connections and uses them until :class:`EndStreams`.

    ``pause`` is the time between two rounds, in seconds. Sources are as in
    :class:`~tests.lab.traffic.clients.Connect`. Raises MachineError when a connection cannot be opened.
    """

    family: Family
    protocol: Protocol
    address: str
    port: int
    sources: tuple[str, ...]
    count: int
    first: int = 0
    pause: float = 0.1

    def run(self, host: Host) -> None:
        """Open the connections, and use them in a thread."""
        streams = _Streams([_open(self, self.first + n) for n in range(self.count)], self.pause)
        streams.round()
        host.kept.setdefault(_KEPT, []).append(streams)
        streams.thread.start()


@dataclass(frozen=True, slots=True)
class Kept:
    """The results of all connections that this process kept open: the answers, and the failures."""

    connections: int
    answers: int
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CountAnswers(Request):
    """Returns the results so far; with ``rounds``, after that number of further rounds."""

    rounds: int = 0

    def run(self, host: Host) -> Kept:
        """Count the answers."""
        streams: list[_Streams] = host.kept.get(_KEPT, [])
        wanted = [s.rounds + self.rounds + 1 if self.rounds else 0 for s in streams]
        for stream, least in zip(streams, wanted, strict=True):
            while stream.rounds < least and stream.going:
                time.sleep(0.005)
        return _sum(streams)


@dataclass(frozen=True, slots=True)
class EndStreams(Request):
    """Closes all connections, and returns their results."""

    def run(self, host: Host) -> Kept:
        """Close all connections and return the results."""
        streams: list[_Streams] = host.kept.pop(_KEPT, [])
        for stream in streams:
            stream.stopping.set()
        for stream in streams:
            stream.thread.join()
        total = _sum(streams)
        for stream in streams:
            stream.close()
        return total


@dataclass(slots=True)
class _Stream:
    socket: socket.socket
    name: str
    pod: bytes = b""
    request: bytes = b""
    waits: bool = False


@dataclass(slots=True)
class _Streams:
    streams: list[_Stream]
    pause: float
    rounds: int = 0
    answers: int = 0
    broken: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)
    going: int = field(init=False)
    _poll: select.epoll = field(default_factory=select.epoll)
    _by_fd: dict[int, _Stream] = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._go, daemon=True)
        self.going = len(self.streams)
        self._by_fd = {s.socket.fileno(): s for s in self.streams}
        for fd in self._by_fd:
            self._poll.register(fd, select.EPOLLIN)

    def round(self) -> None:
        """Send a line on each connection, and wait for the answers."""
        number = self.rounds
        for stream in list(self._by_fd.values()):
            stream.request = b"%d-%d\n" % (stream.socket.fileno(), number)
            try:
                stream.socket.send(stream.request)
                stream.waits = True
            except OSError as e:
                self._break(stream, e.strerror or str(e))
        deadline = time.monotonic() + _SECONDS
        while any(s.waits for s in self._by_fd.values()):
            left = deadline - time.monotonic()
            if left <= 0:
                for stream in [s for s in self._by_fd.values() if s.waits]:
                    self._break(stream, f"no answer in round {number}")
                break
            for fd, _ in self._poll.poll(left):
                self._answer(self._by_fd[fd])
        self.rounds += 1

    def close(self) -> None:
        for stream in self._by_fd.values():
            stream.socket.close()
        self._poll.close()

    def _go(self) -> None:
        while not self.stopping.wait(self.pause):
            self.round()

    def _answer(self, stream: _Stream) -> None:
        try:
            answer = stream.socket.recv(65536)
        except OSError as e:
            self._break(stream, e.strerror or str(e))
            return
        words = answer.split(b" ")
        if len(words) != 4 or words[3] != stream.request:
            self._break(stream, f"answered {answer!r} to {stream.request!r}")
        elif stream.pod and words[0] != stream.pod:
            self._break(stream, f"was {stream.pod.decode()}'s, and {words[0].decode()} answers")
        else:
            stream.pod, stream.waits = words[0], False
            self.answers += 1

    def _break(self, stream: _Stream, why: str) -> None:
        self.broken.append(f"{stream.name}: {why}")
        stream.waits = False
        fd = stream.socket.fileno()
        self._poll.unregister(fd)
        del self._by_fd[fd]
        stream.socket.close()
        self.going -= 1


def _open(job: BeginStreams, number: int) -> _Stream:
    kind = socket.SOCK_STREAM if job.protocol is Protocol.TCP else socket.SOCK_DGRAM
    opened = socket.socket(job.family.socket_family, kind)
    opened.settimeout(_SECONDS)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    source = source_of(job.sources, number)
    opened.bind(source)
    opened.connect((job.address, job.port))
    opened.setblocking(False)
    return _Stream(opened, f"{job.protocol} {source[0]}:{source[1]} > {job.address}:{job.port}")


def _sum(streams: list[_Streams]) -> Kept:
    return Kept(
        connections=sum(len(s.streams) for s in streams),
        answers=sum(s.answers for s in streams),
        broken=tuple(b for s in streams for b in s.broken),
    )
