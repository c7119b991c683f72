"""A private mount namespace of this process."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["MS_BIND", "enter_mount_namespace", "mount"]

_CLONE_NEWNS: Final = 0x00020000
_MNT_DETACH: Final = 2
MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 1 << 18
_INNER: Final = Path("/sys/fs")


def enter_mount_namespace() -> None:
    """Move this process, which must have one thread, into a new mount namespace. Raises MachineError.

    Mounts are made private, so that none made here reaches other namespaces. If the root of a chroot is no
    mount point, the kernel refuses this for ``/`` (mount_namespaces(7)). Then ``/`` is bind-mounted on a
    folder inside ``/sys``, and this mount becomes the root.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise MachineError(f"cannot make a mount namespace: {os.strerror(ctypes.get_errno())}")
    try:
        mount("none", Path("/"), flags=_MS_REC | _MS_PRIVATE)
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise MachineError(f"cannot make mounts private: {e.strerror}") from e
        try:
            _root_of_our_own()
        except OSError as of_chroot:
            raise MachineError(f"cannot make mounts private in a chroot: {of_chroot}") from of_chroot


def mount(source: str, target: Path, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """Call mount(2). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    words = (source.encode(), os.fsencode(target), None if kind is None else kind.encode())
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(target))


def _root_of_our_own() -> None:
    mount("none", _INNER.parent, flags=_MS_REC | _MS_PRIVATE)
    mount("none", _INNER, "tmpfs")
    root = _INNER / "root"
    root.mkdir()
    folder = Path.cwd()
    mount("/", root, flags=MS_BIND | _MS_REC)
    mount("none", root, flags=_MS_REC | _MS_PRIVATE)
    os.chroot(root)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.umount2(os.fsencode(_INNER), _MNT_DETACH):  # the copy of the mount, which hides the original
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(_INNER))
    os.chdir(folder)
