"""Many short connections: each sends one line from a different source and checks the whole answer.

One thread handles many connections at the same time. A connection fails if it is refused or reset, if the
answer is wrong, or if there is none in time. It is not repeated. TCP itself may retransmit segments, which
are counted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final

from tests.lab.kuberules import Protocol
from tests.lab.traffic.host import Host, Request
from translate.ir import Family

__all__ = ["FIRST_PORT", "LAST_PORT", "Answered", "Connect", "ConnectionResults", "source_of"]

FIRST_PORT: Final = 10_000
LAST_PORT: Final = 60_000
_KEPT_FAILURES: Final = 20
_TCPI_TOTAL_RETRANS: Final = 100
"""The offset of ``tcpi_total_retrans`` in ``struct tcp_info`` (``linux/tcp.h``)."""
_LINGER_RESET: Final = struct.pack("=ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect(Request):
    """Makes ``count`` connections to one address, at most ``at_once`` at the same time.

    Connection ``n``, from ``first`` on, has a source of its own (:func:`source_of`). ``seconds`` is how long
    an answer may take. Returns :class:`ConnectionResults`.
    """

    family: Family
    protocol: Protocol
    address: str
    port: int
    sources: tuple[str, ...]
    count: int
    first: int = 0
    at_once: int = 64
    seconds: float = 10.0

    def run(self, host: Host) -> ConnectionResults:
        """Make all connections."""
        return _Round(self).go()


@dataclass(frozen=True, slots=True)
class Answered:
    """The pod that answered, and when the connection began (``time.monotonic``, one for all processes)."""

    began: float
    pod: str


@dataclass(slots=True)
class ConnectionResults:
    """The results of a round. ``sources`` counts the addresses that pods saw as the source."""

    answers: list[Answered] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    pods: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    failures: list[str] = field(default_factory=list)
    """The first failures in words."""
    resent: int = 0
    seconds: float = 0.0

    def add(self, other: ConnectionResults) -> None:
        """Add the results of another round."""
        self.answers += other.answers
        self.sources += other.sources
        self.pods += other.pods
        self.failed += other.failed
        self.failures = (self.failures + other.failures)[:_KEPT_FAILURES]
        self.resent += other.resent
        self.seconds += other.seconds

    def fail(self, why: str) -> None:
        """Count a failure."""
        self.failed += 1
        if len(self.failures) < _KEPT_FAILURES:
            self.failures.append(why)


@dataclass(slots=True)
class _Connection:
    number: int
    socket: socket.socket
    source: tuple[str, int]
    began: float
    request: bytes
    sent: bool


@dataclass(slots=True)
class _Round:
    job: Connect
    result: ConnectionResults = field(default_factory=ConnectionResults)
    _open: dict[int, _Connection] = field(default_factory=dict)
    _oldest: deque[_Connection] = field(default_factory=deque)
    _poll: select.epoll = field(default_factory=select.epoll)

    def go(self) -> ConnectionResults:
        job, began = self.job, time.monotonic()
        waiting = iter(range(job.first, job.first + job.count))
        left = True
        while left or self._open:
            while left and len(self._open) < job.at_once:
                number = next(waiting, None)
                if number is None:
                    left = False
                else:
                    self._begin(number)
            for fd, _ in self._poll.poll(0.2):
                self._ready(self._open[fd])
            self._expire()
        self._poll.close()
        self.result.seconds = time.monotonic() - began
        return self.result

    def _begin(self, number: int) -> None:
        job = self.job
        tcp = job.protocol is Protocol.TCP
        kind = socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM
        opened = socket.socket(job.family.socket_family, kind | socket.SOCK_NONBLOCK)
        source = source_of(job.sources, number)
        connection = _Connection(number, opened, source, time.monotonic(), b"%d\n" % number, sent=False)
        try:
            # An earlier connection from here may be in TIME_WAIT, to another destination.
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(source)
            status = opened.connect_ex((job.address, job.port))
            if status not in (0, errno.EINPROGRESS):
                raise OSError(status, os.strerror(status))
            if not tcp:
                opened.send(connection.request)
                connection.sent = True
        except OSError as e:
            self.result.fail(self._described(connection, e.strerror or str(e)))
            opened.close()
            return
        self._open[opened.fileno()] = connection
        self._oldest.append(connection)
        self._poll.register(opened, select.EPOLLIN if connection.sent else select.EPOLLOUT)

    def _ready(self, c: _Connection) -> None:
        try:
            if not c.sent:
                status = c.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if status:
                    raise OSError(status, os.strerror(status))
                c.socket.send(c.request)
                c.sent = True
                self._poll.modify(c.socket, select.EPOLLIN)
                return
            answer = c.socket.recv(65536)
        except OSError as e:
            self._end(c, e.strerror or str(e))
            return
        words = answer.split(b" ")
        if len(words) != 4 or words[3] != c.request:
            self._end(c, f"answered {answer!r}")
            return
        pod, source = words[0].decode(), words[1].decode()
        self.result.answers.append(Answered(c.began, pod))
        self.result.pods[pod] += 1
        self.result.sources[source] += 1
        self._end(c, None)

    def _end(self, c: _Connection, failure: str | None) -> None:
        if failure is not None:
            self.result.fail(self._described(c, failure))
        if self.job.protocol is Protocol.TCP:
            with contextlib.suppress(OSError):
                info = c.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                self.result.resent += int.from_bytes(info[_TCPI_TOTAL_RETRANS:], "little")
        self._poll.unregister(c.socket)
        del self._open[c.socket.fileno()]
        c.socket.close()

    def _expire(self) -> None:
        limit = time.monotonic() - self.job.seconds
        while self._oldest and (self._oldest[0].began < limit or self._oldest[0].socket.fileno() < 0):
            connection = self._oldest.popleft()
            if connection.socket.fileno() >= 0:
                self._end(connection, "no answer" if connection.sent else "no connection")

    def _described(self, c: _Connection, why: str) -> str:
        job = self.job
        return f"{job.protocol} {c.source[0]}:{c.source[1]} > {job.address}:{job.port}: {why}"


def source_of(sources: tuple[str, ...], number: int) -> tuple[str, int]:
    """Return address and port of connection ``number``: each address in turn, and then the next port.

    Ports begin again after :data:`LAST_PORT`.
    """
    turn, at = divmod(number, len(sources))
    return sources[at], FIRST_PORT + turn % (LAST_PORT - FIRST_PORT)
