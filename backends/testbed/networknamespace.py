"""A private network namespace for this process, also for users other than root."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["enter_network_namespace"]

_CLONE_NEWNET: Final = 0x40000000
_CLONE_NEWUSER: Final = 0x10000000
_SWITCHES: Final = (
    Path("/proc/sys/kernel/unprivileged_userns_clone"),  # Debian's; 0 forbids
    Path("/proc/sys/user/max_user_namespaces"),  # 0 forbids
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),  # Ubuntu's; 1 forbids
)


def enter_network_namespace() -> None:
    """Move this process, which must have one thread, into a fresh network namespace.

    Without permission to create one, it is created inside a user namespace, in which this process is root.
    That is enough for devices, iptables and nft, but not for BPF programs. Raises MachineError; it names the
    sysctl that forbids user namespaces, if there is one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if not libc.unshare(_CLONE_NEWNET):
        return
    why = os.strerror(ctypes.get_errno())
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise MachineError(
            f"cannot make a network namespace: {why}; "
            f"nor a user namespace: {reason}{_forbidden()}; root is needed"
        )
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError as e:
        raise MachineError(f"cannot be root in a user namespace: {e.strerror}; root is needed") from e


def _forbidden() -> str:
    for switch in _SWITCHES:
        try:
            value = switch.read_text().strip()
        except OSError:
            continue
        if (value != "0") if "restrict" in switch.name else (value == "0"):
            return f" ({switch.name} is {value})"
    return ""
