"""Private network namespaces for this process, one after the other, also for users other than root."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["NetworkNamespaces"]

_CLONE_NEWNET: Final = 0x40000000
_CLONE_NEWUSER: Final = 0x10000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_SWITCHES: Final = (
    Path("/proc/sys/kernel/unprivileged_userns_clone"),  # Debian's; 0 forbids
    Path("/proc/sys/user/max_user_namespaces"),  # 0 forbids
    Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),  # Ubuntu's; 1 forbids
)


class NetworkNamespaces:
    """Fresh network namespaces for this process, which must have one thread.

    Each is made from the same one, because a namespace inherits sysctls from the one that it is made from if
    ``net.core.devconf_inherit_init_net`` is 3.
    """

    def __init__(self) -> None:
        self._origin = -1

    def enter(self) -> None:
        """Move this process into a fresh network namespace.

        Without permission to create one, it is created inside a user namespace, in which this process is
        root. That is enough for devices, iptables and nft, but not for BPF programs. Raises MachineError; it
        names the sysctl that forbids user namespaces, if there is one.
        """
        if self._origin >= 0:
            _insist(_LIBC.setns(self._origin, _CLONE_NEWNET))
            _insist(_LIBC.unshare(_CLONE_NEWNET))
            return
        origin = _present()
        if _LIBC.unshare(_CLONE_NEWNET):
            why = os.strerror(ctypes.get_errno())
            os.close(origin)
            _enter_user_namespace(why)
            # This process could not return to the namespace that it comes from.
            origin = _present()
            _insist(_LIBC.unshare(_CLONE_NEWNET))
        self._origin = origin


def _present() -> int:
    return os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _insist(status: int) -> None:
    if status:
        raise MachineError(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")


def _enter_user_namespace(why: str) -> None:
    """Enter a new user namespace with a network namespace; ``why`` there is none without it."""
    user, group = os.geteuid(), os.getegid()
    if _LIBC.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
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
