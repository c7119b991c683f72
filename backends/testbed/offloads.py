"""Switches off a device's offloads, so that checksums and segments are as on a wire."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import socket
import struct
from enum import IntEnum
from typing import Final

from translate.errors import MachineError

__all__ = ["Offload", "switch_off"]

_SIOCETHTOOL: Final = 0x8946


class Offload(IntEnum):
    """The requests of ethtool that set one offload (``linux/ethtool.h``)."""

    RX_CHECKSUM = 0x15
    TX_CHECKSUM = 0x17
    SCATTER_GATHER = 0x19
    TSO = 0x1F
    GSO = 0x24
    GRO = 0x2C


def switch_off(device: str, *offloads: Offload) -> None:
    """Switch off offloads of a device. Raises MachineError if the kernel refuses one that the device has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for offload in offloads:
            value = ctypes.create_string_buffer(struct.pack("=II", offload, 0))
            request = struct.pack("16sP16x", device.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(control, _SIOCETHTOOL, request)
            except OSError as e:
                # A device that cannot switch an offload does not have it.
                if e.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise MachineError(f"cannot switch offloads off on {device}: {e.strerror}") from e
