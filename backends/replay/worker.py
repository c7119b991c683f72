"""A child process in a network namespace of its own, which does not outlive its parent.

The child is a fresh interpreter, not a fork: a parent with threads (a progress display, a thread
per backend) could leave a fork with somebody else's locks held. It asks the kernel to be killed
with its parent (``PR_SET_PDEATHSIG``) before it makes anything, and everything it makes lives in
its namespace or on its file descriptors; so nothing is left behind, whichever way it ends.

The two talk over a socket in turns, one pickled message each way. SIGINT is the parent's affair.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self
from weakref import WeakSet

from backends.testbed.networknamespace import enter_network_namespace
from translate.errors import MachineError, NfparityError, ParseError, UnsupportedError

__all__ = ["Worker", "WorkerEndedError", "child_main", "end_workers"]

_LENGTH: Final = struct.Struct("=Q")
_PR_SET_PDEATHSIG: Final = 1
_GOODBYE_SECONDS: Final = 5.0
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[3:]; "
    "from backends.replay.worker import child_main; child_main(int(sys.argv[1]), int(sys.argv[2]))"
)

Server = Callable[[Any], Any]
"""A function that serves in the child: it takes each message of the parent and returns the answer."""


class WorkerEndedError(MachineError):
    """The child has ended without a request: it was killed, or a library crashed it.

    ``status`` is its exit status, below zero for a signal.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


_LIVE: Final[WeakSet[Worker]] = WeakSet()


def end_workers() -> None:
    """Kill the children of all workers of this process; whoever waits for one gets a WorkerEndedError.

    For another thread than theirs, which has to go and cannot wait for a library to come back.
    """
    for worker in tuple(_LIVE):
        worker.end()


class Worker:
    """The parent's end. ``start`` creates the server; it receives the messages of :meth:`ask`.

    Close it with :meth:`close`, or use it as a context. The child dies with the *thread* that made
    it (prctl(2)), so keep that thread alive meanwhile.
    """

    def __init__(self, start: Callable[[], Server]) -> None:
        ours, theirs = socket.socketpair()
        self._socket = ours
        with theirs:
            # The same modules as here, wherever they came from ("" is the current folder).
            path = [*map(os.path.abspath, sys.path), str(Path(__file__).parents[2])]
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), str(os.getpid()), *path),
                stdin=subprocess.DEVNULL,
                stdout=2,  # a tool that prints must not mix with the report
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C on the terminal is for the parent alone
            )
        _LIVE.add(self)
        try:
            self.ask(start)
        except BaseException:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.kill()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def ask(self, message: object) -> Any:
        """Send a message and return the answer.

        Raises what the child raised if it is an NfparityError; WorkerEndedError if the child is gone.
        """
        packed = _pack(message)
        try:
            self._socket.sendall(packed)
            kind, value = _receive(self._socket)
        except (EOFError, ConnectionError) as e:
            self.kill()
            status = self._process.returncode
            raise WorkerEndedError(f"the replay process ended by itself (status {status})", status) from e
        match kind:
            case "done":
                return value
            case "error":
                raise _thaw(*value)
            case _:
                raise RuntimeError(f"in the replay process:\n{value}")

    def end(self) -> None:
        """Kill the child; the next :meth:`ask` raises WorkerEndedError."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Wait until the child has served its request, and reap it; kill it if it does not end."""
        self._socket.close()
        try:
            self._process.wait(_GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End the child at once and reap it."""
        self._socket.close()
        self._process.kill()
        self._process.wait()


def child_main(fd: int, parent: int) -> None:
    """Serve the parent until it hangs up. Only for the interpreter that :class:`Worker` starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # it died before we had asked
    channel = socket.socket(fileno=fd)
    channel.set_inheritable(False)
    server: Server | None = None
    try:
        while True:
            message = _receive(channel)
            try:
                if server is None:
                    enter_network_namespace()
                    server, answer = message(), _pack(("done", None))
                else:
                    answer = _pack(("done", server(message)))
            except NfparityError as e:
                answer = _pack(("error", _freeze(e)))
            except MemoryError:
                answer = _pack(("error", (MachineError, "the replay process has not enough memory")))
            except OSError as e:
                answer = _pack(("error", (MachineError, f"the kernel refuses: {e}")))
            except Exception:  # a bug of ours: its traceback belongs into the parent's
                answer = _pack(("bug", traceback.format_exc()))
            channel.sendall(answer)
    except (EOFError, ConnectionError):
        pass
    finally:
        close = getattr(server, "close", None)
        if close is not None:
            with contextlib.suppress(NfparityError):
                close()
        sys.stderr.flush()
        os._exit(0)


def _pack(message: object) -> bytes:
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def _receive(channel: socket.socket) -> Any:
    (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
    return pickle.loads(_exactly(channel, length))


def _exactly(channel: socket.socket, length: int) -> bytes:
    data = bytearray(length)
    view = memoryview(data)
    while view:
        count = channel.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return bytes(data)


def _freeze(error: NfparityError) -> tuple[type[NfparityError], Any]:
    # Exceptions pickle by their message, which is not what these are made from.
    match error:
        case ParseError():
            return type(error), error.diagnostics
        case UnsupportedError():
            return type(error), error.refusals
        case _:
            return type(error), str(error)


def _thaw(kind: type[NfparityError], value: Any) -> NfparityError:
    return kind(value)
