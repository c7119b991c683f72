"""Dumps of a netlink socket, by a kernel that is played here."""

from __future__ import annotations

import socket
import struct

import pytest

from backends.testbed.netlink import Netlink

DONE, NEW_LINK, GET_LINK = 3, 16, 18
INTERRUPTED = 0x10


class Kernel:
    """A socket that answers each request with the next dump, a list of flags and bodies."""

    def __init__(self, *dumps: list[tuple[int, bytes]]) -> None:
        self.dumps = list(dumps)
        self.answer = b""

    def bind(self, address: tuple[int, int]) -> None:
        pass

    def send(self, request: bytes) -> None:
        (sequence,) = struct.unpack_from("=8xI", request)
        *messages, (flags, end) = self.dumps.pop(0)
        self.answer = b"".join(
            struct.pack("=IHHII", 16 + len(body), kind, marks, sequence, 0) + body
            for kind, marks, body in (*((NEW_LINK, f, b) for f, b in messages), (DONE, flags, end))
        )

    def recv(self, size: int) -> bytes:
        return self.answer

    def close(self) -> None:
        pass


@pytest.mark.parametrize("marked", [0, 1])
def test_a_dump_that_has_changed_meanwhile_is_repeated(marked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [(0, b"old1"), (0, bytes(4))]
    first[marked] = INTERRUPTED, first[marked][1]
    kernel = Kernel(first, [(0, b"new1"), (0, b"new2"), (0, bytes(4))])
    monkeypatch.setattr(socket, "socket", lambda *_: kernel)
    with Netlink(socket.NETLINK_ROUTE) as netlink:
        assert netlink.dump(GET_LINK, bytes(16)) == [b"new1", b"new2"]
    assert not kernel.dumps
