"""A child process in its own network namespace, which does not outlive its parent.

The child is a fork of a small server (:mod:`backends.replay.forkserver`), not of the parent, whose threads
may hold locks. The kernel kills it with the server, which ends with the parent. Everything that it makes
exists in its namespace or by its file descriptors, so nothing remains, however it ends.

The two exchange pickled messages over a socket in turns. Only the parent handles SIGINT.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final, Self
from weakref import WeakSet

from backends.replay.forkserver import fork_process
from backends.replay.messages import pack_message, receive_message
from backends.replay.served import Begin, End, Server, thaw
from translate.errors import MachineError

__all__ = ["Worker", "WorkerEndedError", "end_workers"]

_GOODBYE_SECONDS: Final = 5.0


class WorkerEndedError(MachineError):
    """The child has ended without a request: it was killed, or a library crashed it.

    ``status`` is its exit status, negative for a signal.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


_LIVE: Final[WeakSet[Worker]] = WeakSet()


def end_workers() -> None:
    """Kill the children of all workers of this process; callers that wait for them get a WorkerEndedError.

    Meant for a thread that must end the process and cannot wait for the calls of other threads to return.
    """
    for worker in tuple(_LIVE):
        worker.end()


class Worker:
    """A child process, for its parent.

    ``start`` creates the server in the child, which receives the messages of :meth:`ask`. Close it with
    :meth:`close`, or use it as a context manager.
    """

    def __init__(self, start: Callable[[], Server]) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs:
            try:
                self._process = fork_process(start, theirs)
            except BaseException:
                ours.close()
                raise
        _LIVE.add(self)
        try:
            self._answer()
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exception: type[BaseException] | None, *_: object) -> None:
        if exception is None:
            self.close()
        else:
            self.kill()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def ask(self, message: object) -> Any:
        """Send a message and return the answer.

        Raises the NfparityError that the child raised, or WorkerEndedError if the child is gone.
        """
        packed = pack_message(message)
        try:
            self._socket.sendall(packed)
        except ConnectionError as e:
            raise self._ended() from e
        return self._answer()

    def begin(self, start: Callable[[], Server]) -> None:
        """Create a server in the child's next network namespace, after :meth:`finish`.

        Raises what the constructor raises; then the child ends.
        """
        self.ask(Begin(start))

    def finish(self) -> bool:
        """Close the server; return True if the child is ready for another as a new child would be."""
        return bool(self.ask(End()))

    def _answer(self) -> Any:
        try:
            kind, value = receive_message(self._socket)
        except (EOFError, ConnectionError) as e:
            raise self._ended() from e
        match kind:
            case "done":
                return value
            case "error":
                raise thaw(*value)
            case _:
                raise RuntimeError(f"in the replay process:\n{value}")

    def _ended(self) -> WorkerEndedError:
        self.kill()
        status = self._process.status
        return WorkerEndedError(f"the replay process ended by itself (status {status})", status)

    def end(self) -> None:
        """Kill the child; the next :meth:`ask` raises WorkerEndedError."""
        self._process.kill()

    def close(self) -> None:
        """Wait until the child has answered its request, and reap it; kill it if it does not end."""
        self._socket.close()
        if not self._process.wait(_GOODBYE_SECONDS):
            self.kill()

    def kill(self) -> None:
        """Kill the child and reap it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
