"""Pickled messages over a socket, each after its length."""

from __future__ import annotations

import pickle
import socket
import struct
from typing import Any, Final

__all__ = ["pack_message", "receive_message"]

_LENGTH: Final = struct.Struct("=Q")


def pack_message(message: object) -> bytes:
    """Return a message as bytes. Raises the exceptions of pickle."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(data)) + data


def receive_message(channel: socket.socket) -> Any:
    """Return the next message. Raises EOFError if the socket ends, and the exceptions of pickle."""
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
