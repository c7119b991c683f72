"""Processes forked from a small server with one thread, which has imported their modules already.

A parent with threads (a progress display, a thread per backend) cannot fork safely: another thread's locks
would stay held. A fresh interpreter for each child is safe, and takes ten times as long as a fork. So a fresh
interpreter is started once, and forks on request. It has one thread, and only imports the modules.

It ends when the other end of its socket closes, so it ends with its parent in any case. The kernel kills its
children with it (``PR_SET_PDEATHSIG``). A child gets the parent's present environment, directory and standard
error. The other inherited properties (namespaces, limits, user, umask, import path) are those of
:func:`inherited`, and there is one server for each value of these.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import gc
import os
import pickle
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from backends.replay.messages import pack_message
from backends.replay.served import Server, serve
from translate.collector import collector_seldom

__all__ = ["ForkedProcess", "fork_process", "inherited", "server_main"]

_REQUEST: Final = struct.Struct("=Qi")
"""Number of the request, and the process to reap; 0 to fork one."""
_ANSWER: Final = struct.Struct("=Qii")
"""Number of the request, the process or its wait status, and the errno of a failure."""
_DESCRIPTORS: Final = 4
"""Descriptors of a request to fork: the child's channel, directory, standard error, and the pickled start."""
_PR_SET_PDEATHSIG: Final = 1
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from backends.replay.forkserver import server_main; server_main(int(sys.argv[1]))"
)


class ForkedProcess:
    """A child of a fork server, for its parent."""

    def __init__(self, server: _ForkServer, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        """Exit status, negative for a signal; None while it runs, or if it ended together with the server."""
        self._server = server
        self._handle = os.pidfd_open(pid)  # it is a zombie until it is reaped, so the number is not reused
        self._lock = threading.Lock()

    def kill(self) -> None:
        """Send SIGKILL; nothing happens if the process has been reaped."""
        with self._lock, contextlib.suppress(ProcessLookupError):
            if self._handle >= 0:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end and reap the process; return False if it has not ended after ``seconds``."""
        if self._handle < 0:
            return True
        ended = select.poll()
        ended.register(self._handle, select.POLLIN)
        if not ended.poll(None if seconds is None else seconds * 1000):
            return False
        with self._lock:
            if self._handle >= 0:
                self.status = self._server.reap(self.pid)
                os.close(self._handle)
                self._handle = -1
        return True


class _ForkServer:
    """The parent's end of a server."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        self._requests = 0
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-c", _BOOT, str(theirs.fileno()), *_import_path()),
                stdin=subprocess.DEVNULL,
                stdout=2,
                pass_fds=(theirs.fileno(),),
                cwd="/",  # any other directory would keep a mount busy
                start_new_session=True,  # only the parent handles Ctrl-C on the terminal
            )

    def fork(self, start: Callable[[], Server], channel: socket.socket) -> int:
        """Return the pid of a new child that serves ``channel``. Raises OSError and pickle's exceptions."""
        order = os.memfd_create("start")
        directory = -1
        try:
            with open(order, "wb", closefd=False) as file:
                pickle.dump((dict(os.environb), pickle.dumps(start, pickle.HIGHEST_PROTOCOL)), file)
            directory = os.open(".", os.O_PATH | os.O_CLOEXEC)
            return self._ask(0, (channel.fileno(), directory, 2, order))
        finally:
            os.close(order)
            if directory >= 0:
                os.close(directory)

    def reap(self, pid: int) -> int | None:
        """Return the exit status of a child that has ended; None if the server has gone."""
        try:
            return os.waitstatus_to_exitcode(self._ask(pid))
        except (ConnectionError, ChildProcessError):
            return None

    def _ask(self, pid: int, descriptors: Sequence[int] = ()) -> int:
        with self._lock:
            self._requests += 1
            socket.send_fds(self._socket, [_REQUEST.pack(self._requests, pid)], descriptors)
            number = -1
            while number != self._requests:  # Ctrl-C can leave the answer to an earlier request unread
                answer = self._socket.recv(_ANSWER.size)
                if not answer:
                    raise ConnectionResetError("the fork server has ended")
                number, value, error = _ANSWER.unpack(answer)
        if error:
            raise OSError(error, os.strerror(error))
        return int(value)

    def close(self) -> None:
        """End the server and all its running children."""
        self._socket.close()
        self._process.wait()

    def forget(self) -> None:
        """Close this end of the server in another process, which was forked from the server's parent."""
        self._socket.close()
        self._process.returncode = 0  # not a child of this process


_servers: Final[dict[object, _ForkServer]] = {}
_starting = threading.Lock()


def fork_process(start: Callable[[], Server], channel: socket.socket) -> ForkedProcess:
    """Fork a process that runs :func:`~backends.replay.served.serve` at ``channel`` with ``start``.

    Raises OSError if no process can be created, and the exceptions of pickle.
    """
    key = inherited()
    with _starting:
        server = _servers.get(key)
        if server is None:
            server = _servers[key] = _ForkServer()
    try:
        return ForkedProcess(server, server.fork(start, channel))
    except ConnectionError:  # it was killed
        with _starting:
            if _servers.get(key) is server:
                del _servers[key]
                server.close()
    return fork_process(start, channel)


def inherited() -> object:
    """Return the properties that a child inherits from the server instead of from this process."""
    own = Path("/proc/thread-self")
    root = os.stat("/")
    return (
        tuple(sorted(os.readlink(own / "ns" / name) for name in os.listdir(own / "ns"))),
        (root.st_dev, root.st_ino),
        tuple(resource.getrlimit(limit) for limit in _LIMITS),
        (os.getresuid(), os.getresgid(), tuple(os.getgroups()), _umask(own)),
        frozenset(os.sched_getaffinity(0)),
        _import_path(),
    )


_LIMITS: Final = tuple(value for name, value in vars(resource).items() if name.startswith("RLIMIT_"))


def _umask(process: Path) -> str:
    lines = (process / "status").read_text().split("\n")
    return next((line for line in lines if line.startswith("Umask:")), "")


def _import_path() -> tuple[str, ...]:
    # The same modules as here ("" is the directory that was current at the start).
    return (*map(_absolute, sys.path), str(Path(__file__).parents[2]))


_absolute = functools.cache(os.path.abspath)


@atexit.register
def _close_all() -> None:
    for server in _servers.values():
        server.close()
    _servers.clear()


def _forget_all() -> None:
    global _starting
    _starting = threading.Lock()
    for server in _servers.values():
        server.forget()
    _servers.clear()


os.register_at_fork(after_in_child=_forget_all)


def server_main(fd: int) -> None:
    """Fork on request until the parent closes the socket; only for the process of a :class:`_ForkServer`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests = socket.socket(fileno=fd)
    requests.set_inheritable(False)
    gc.disable()  # a collection would copy pages that the children share
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(requests, _REQUEST.size, _DESCRIPTORS)
        except ConnectionResetError:  # the parent has ended before it read an answer (unix_release_sock)
            data = b""
        if not data:
            os._exit(0)
        number, pid = _REQUEST.unpack(data)
        value = error = 0
        try:
            value = os.waitpid(pid, 0)[1] if pid else _fork(requests, descriptors)
        except OSError as e:
            error = e.errno or 1
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ConnectionError):
            requests.send(_ANSWER.pack(number, value, error))


def _fork(requests: socket.socket, descriptors: Sequence[int]) -> int:
    channel, directory, errors, order = descriptors
    with open(order, "rb", closefd=False) as file:
        file.seek(0)
        environment, pickled = pickle.load(file)
    start, fault = None, ""
    try:
        start = pickle.loads(pickled)  # imports the child's modules, also for later children
    except Exception:
        fault = traceback.format_exc()
    gc.freeze()
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        _become_child(parent)
        requests.close()
        os.environb.clear()
        os.environb.update(environment)
        os.fchdir(directory)
        for descriptor in (1, 2):  # a tool that prints must not mix with the report
            os.dup2(errors, descriptor)
        for descriptor in (directory, errors, order):
            os.close(descriptor)
        gc.enable()
        with collector_seldom():
            _serve(socket.socket(fileno=channel), start, fault)
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _become_child(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # the server ended before prctl, so no signal will come
    os.setsid()


def _serve(channel: socket.socket, start: Any, fault: str) -> None:
    if fault:
        channel.sendall(pack_message(("bug", fault)))
    else:
        serve(channel, start)
