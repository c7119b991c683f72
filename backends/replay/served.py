"""The child's side of a :class:`~backends.replay.worker.Worker`."""

from __future__ import annotations

import contextlib
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any

from backends.replay.messages import pack_message, receive_message
from backends.testbed.networknamespace import NetworkNamespaces
from translate.dataclass import dataclass
from translate.errors import MachineError, NfparityError, ParseError, UnsupportedError

__all__ = ["Begin", "End", "Server", "serve", "thaw"]

Server = Callable[[Any], Any]
"""A function that serves in the child: it takes each message of the parent and returns the answer.

If it has a method ``close``, that is called when no more messages will come.
"""


@dataclass(frozen=True, slots=True)
class Begin:
    """A message: enter a fresh network namespace, and serve there with the result of ``start``."""

    start: Callable[[], Server]


@dataclass(frozen=True, slots=True)
class End:
    """A message: close the server. The answer is True if another can begin, as in a new process."""


class _Child:
    """Servers of this process, one after the other."""

    def __init__(self) -> None:
        self._namespaces = NetworkNamespaces()
        self._server: Server | None = None
        self._opened: frozenset[str] = frozenset()
        self.lasts = False
        """False if this process must end, because a start has failed."""

    def answer(self, message: Any) -> Any:
        match message:
            case Begin(start):
                self.lasts = False
                self._namespaces.enter()
                self._opened = _opened()
                self._server = start()
                self.lasts = True
                return None
            case End():
                return self.close() and _opened() == self._opened
        assert self._server is not None
        return self._server(message)

    def close(self) -> bool:
        """Close the server, and return whether it has closed everything that it knows of."""
        server, self._server = self._server, None
        close = getattr(server, "close", None)
        try:
            if close is not None:
                close()
        except NfparityError:
            return False
        return True


def _opened() -> frozenset[str]:
    """Return the descriptors of this process with what they refer to, except BPF objects.

    Any other descriptor that a server leaves open could belong to its network namespace.
    """
    folder, opened = "/proc/self/fd", set()
    for number in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):  # the descriptor of the folder
            opened.add(f"{number} {os.readlink(f'{folder}/{number}')}")
    return frozenset(name for name in opened if " anon_inode:bpf-" not in name)


def serve(channel: socket.socket, start: Callable[[], Server]) -> None:
    """Enter a fresh network namespace, call ``start`` there, and answer messages until the parent is gone.

    An answer is ``done`` with a value, ``error`` with an NfparityError, or ``bug`` with a traceback. The
    first answer is about the start.
    """
    child, message = _Child(), Begin(start)
    try:
        while True:
            try:
                answer = pack_message(("done", child.answer(message)))
            except NfparityError as e:
                answer = pack_message(("error", _freeze(e)))
            except MemoryError:
                answer = pack_message(("error", (MachineError, "the replay process has not enough memory")))
            except OSError as e:
                answer = pack_message(("error", (MachineError, f"the kernel refuses: {e}")))
            except Exception:  # a bug in nfparity: its traceback becomes part of the parent's
                answer = pack_message(("bug", traceback.format_exc()))
            channel.sendall(answer)
            if not child.lasts:
                return
            message = receive_message(channel)
    except (EOFError, ConnectionError):
        pass
    finally:
        child.close()


def _freeze(error: NfparityError) -> tuple[type[NfparityError], Any]:
    # Exceptions are pickled by their message, but these have other constructor arguments.
    match error:
        case ParseError():
            return type(error), error.diagnostics
        case UnsupportedError():
            return type(error), error.refusals
        case _:
            return type(error), str(error)


def thaw(error_class: type[NfparityError], value: Any) -> NfparityError:
    """Return the exception from an ``error`` answer."""
    return error_class(value)
