"""The identity of the network namespace that a command acts on.

Its inode may be reused for another namespace when this one is gone; the cookie (``SO_NETNS_COOKIE``,
``net_gen_cookie``) is unique until the next boot.
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Final

from translate.dataclass import dataclass
from translate.errors import MachineError

__all__ = ["NetworkNamespace", "current_namespace"]

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_MACHINE: Final = Path("/etc/machine-id")
_FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""``PROC_PID_INIT_INO``."""
_SO_NETNS_COOKIE: Final = 71


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkNamespace:
    """A network namespace. ``cookie`` is 0 before Linux 5.14.

    ``boot`` is the kernel's boot id, ``machine`` identifies the installation (``machine-id(5)``; empty if
    there is none). ``is_hosts``: it is the namespace of process 1, which exists after every boot.
    """

    inode: int
    cookie: int
    boot: str
    machine: str
    is_hosts: bool


def current_namespace() -> NetworkNamespace:
    """Return the network namespace of this process. Raises MachineError without root."""
    if os.geteuid():
        raise MachineError("needs root")
    inode = os.stat("/proc/self/ns/net").st_ino
    return NetworkNamespace(
        inode=inode,
        cookie=_cookie(),
        boot=_BOOT.read_text().strip(),
        machine=_machine(),
        is_hosts=_is_hosts(inode),
    )


def _is_hosts(inode: int) -> bool:
    """Return whether this is the namespace of the host's process 1; False in another PID namespace."""
    try:
        pids, first = os.stat("/proc/self/ns/pid").st_ino, os.stat("/proc/1/ns/net").st_ino
    except OSError:
        return False
    return pids == _FIRST_PID_NAMESPACE and first == inode


def _machine() -> str:
    try:
        return _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _cookie() -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        try:
            return int(struct.unpack("=Q", any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8))[0])
        except OSError:
            return 0
