"""The child's side of a :class:`~backends.replay.worker.Worker`."""

from __future__ import annotations

import contextlib
import socket
import traceback
from collections.abc import Callable
from typing import Any

from backends.replay.messages import pack_message, receive_message
from backends.testbed.networknamespace import enter_network_namespace
from translate.errors import MachineError, NfparityError, ParseError, UnsupportedError

__all__ = ["Server", "serve", "thaw"]

Server = Callable[[Any], Any]
"""A function that serves in the child: it takes each message of the parent and returns the answer."""


def serve(channel: socket.socket, start: Callable[[], Server]) -> None:
    """Enter a fresh network namespace, call ``start`` there, and answer messages until the parent is gone.

    An answer is ``done`` with a value, ``error`` with an NfparityError, or ``bug`` with a traceback. The
    first answer is about the start.
    """
    server: Server | None = None
    try:
        while True:
            message = None if server is None else receive_message(channel)
            try:
                if server is None:
                    enter_network_namespace()
                    server, answer = start(), pack_message(("done", None))
                else:
                    answer = pack_message(("done", server(message)))
            except NfparityError as e:
                answer = pack_message(("error", _freeze(e)))
            except MemoryError:
                answer = pack_message(("error", (MachineError, "the replay process has not enough memory")))
            except OSError as e:
                answer = pack_message(("error", (MachineError, f"the kernel refuses: {e}")))
            except Exception:  # a bug in nfparity: its traceback becomes part of the parent's
                answer = pack_message(("bug", traceback.format_exc()))
            channel.sendall(answer)
            if server is None:
                return
    except (EOFError, ConnectionError):
        pass
    finally:
        close = getattr(server, "close", None)
        if close is not None:
            with contextlib.suppress(NfparityError):
                close()


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
