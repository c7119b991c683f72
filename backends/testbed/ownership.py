"""Sockets of other users and groups: the kernel records who opened a socket (``f_cred``), not who sends."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from translate.errors import MachineError

__all__ = ["opening_as"]

_LIBC: Final = ctypes.CDLL(None)
_LIBC.setfsuid.restype = _LIBC.setfsgid.restype = ctypes.c_uint
_NOBODY: Final = -1
"""An invalid id: with it, setfsuid(2) and setfsgid(2) change nothing and return the present id."""


@contextmanager
def opening_as(uid: int, gid: int) -> Iterator[None]:
    """Open sockets and files of this thread as this user and group, with unchanged privileges.

    Raises MachineError for a user or group that the user namespace does not have.
    """
    before = _LIBC.setfsuid(_NOBODY), _LIBC.setfsgid(_NOBODY)
    _set(uid, gid)
    try:
        if (_LIBC.setfsuid(_NOBODY), _LIBC.setfsgid(_NOBODY)) != (uid, gid):
            raise MachineError(f"no socket can be opened here as user {uid} and group {gid}")
        yield
    finally:
        _set(*before)


def _set(uid: int, gid: int) -> None:
    _LIBC.setfsgid(ctypes.c_uint(gid))
    _LIBC.setfsuid(ctypes.c_uint(uid))
