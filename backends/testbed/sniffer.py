"""A packet socket on all devices at once, which sees every packet that leaves the node, and its mark.

The socket module would read one message in each call and ask the kernel for the name of the device each time
(``makesockaddr``), which costs more than the message. ``recvmmsg(2)`` reads many in one call; its structures
are laid out here once.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from typing import Final

from translate.errors import MachineError

__all__ = ["SO_RCVMARK", "Sniffer"]

SO_RCVMARK: Final = 75
_SO_ATTACH_FILTER: Final = 26
_ETH_P_ALL: Final = 3
_PACKET_OUTGOING: Final = 4

_MANY: Final = 128
"""The number of packets read in one call."""
_MESSAGE: Final = struct.Struct("PIPNPNi0PI0P")
"""The layout of ``struct mmsghdr``: name, vector and control with their sizes, flags, message length."""
_LENGTH: Final = struct.Struct(f"{_MESSAGE.size - struct.calcsize('I0P')}xI0P")
"""The part of a ``struct mmsghdr`` that the kernel fills in."""
_VECTOR: Final = struct.Struct("PN")
"""The layout of ``struct iovec``."""
_SLOT: Final = 2048
"""The size of a packet's buffer: ``struct sockaddr_ll`` (20 bytes), one control message, and the packet."""
_CONTROL, _DATA = 24, 48
_METADATA: Final = struct.Struct(f"=4xi{_CONTROL - 8}x{struct.calcsize('Nii')}xI")
"""The parts read from a slot: the index of the device, and the mark, which is the only control message."""
assert _METADATA.size <= _DATA


class Sniffer:
    """Sees each packet of one ethertype that leaves by a device other than ``lo``, after tc's egress.

    Raises MachineError if the kernel does not report marks.
    """

    def __init__(self, ethertype: int) -> None:
        # Only taps for all protocols see outgoing packets (dev_queue_xmit_nit). The filter keeps the
        # packets of the family that leave by a device other than lo, whose index is always 1.
        # Nothing is sent before the first read, so no packet arrives before the filter is attached.
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
        self._socket = socket.socket(socket.AF_PACKET, kind, socket.htons(_ETH_P_ALL))
        _attach_filter(
            self._socket,
            (
                (0x30, 0, 0, 0xFFFFF004),  # packet type
                (0x15, 0, 5, _PACKET_OUTGOING),
                (0x20, 0, 0, 0xFFFFF008),  # interface index
                (0x15, 3, 0, 1),
                (0x28, 0, 0, 0xFFFFF000),  # protocol
                (0x15, 0, 1, ethertype),
                (0x06, 0, 0, 0x40000),
                (0x06, 0, 0, 0),
            ),
        )
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVMARK, 1)
        except OSError as e:
            raise MachineError("this kernel has no SO_RCVMARK, which needs Linux 5.19") from e
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._number = self._socket.fileno()
        self._recvmmsg = ctypes.CDLL(None, use_errno=True).recvmmsg
        self._recvmmsg.argtypes = [
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_uint,
            ctypes.c_int,
            ctypes.c_void_p,
        ]
        self._slots = bytearray(_MANY * _SLOT)
        self._vectors = bytearray(_MANY * _VECTOR.size)
        self._messages = bytearray(_MANY * _MESSAGE.size)
        slots, vectors, self._address = map(_address, (self._slots, self._vectors, self._messages))
        for n in range(_MANY):
            slot, vector = slots + n * _SLOT, vectors + n * _VECTOR.size
            _VECTOR.pack_into(self._vectors, n * _VECTOR.size, slot + _DATA, _SLOT - _DATA)
            names = (slot, _CONTROL, vector, 1, slot + _CONTROL, _DATA - _CONTROL, 0, 0)
            _MESSAGE.pack_into(self._messages, n * _MESSAGE.size, *names)
        self._blank = bytes(self._messages)

    def fileno(self) -> int:
        """The socket's file descriptor."""
        return self._number

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def read(self) -> list[tuple[int, bytes, int]]:
        """Return packets that have left and were not read before: the device's index, the packet, its mark.

        There are at most 128 of them. A packet longer than the devices' MTU is cut.
        """
        count = self._recvmmsg(self._number, self._address, _MANY, socket.MSG_DONTWAIT, None)
        if count < 0:
            if (number := ctypes.get_errno()) == errno.EAGAIN:
                return []
            raise OSError(number, os.strerror(number))
        slots, packets = self._slots, []
        for n in range(count):
            at = n * _SLOT
            index, mark = _METADATA.unpack_from(slots, at)
            (length,) = _LENGTH.unpack_from(self._messages, n * _MESSAGE.size)
            packets.append((index, bytes(slots[at + _DATA : at + _DATA + length]), mark))
        written = count * _MESSAGE.size  # by the kernel
        self._messages[:written] = self._blank[:written]
        return packets


def _address(buffer: bytearray) -> int:
    # A bytearray that is never resized stays where it is.
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def _attach_filter(sock: socket.socket, program: tuple[tuple[int, int, int, int], ...]) -> None:
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    )
    sock.setsockopt(
        socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    )
