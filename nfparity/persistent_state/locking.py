"""Locks that exclude other commands until this process and its tools have ended."""

from __future__ import annotations

import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["file_lock", "take_lock"]

_LOOK_SECONDS: Final = 0.05


def take_lock(path: Path, *, patience: float = math.inf) -> int:
    """Return a descriptor of a locked file, and make sure that the file still has that name.

    Waits at most ``patience`` seconds for the lock, then raises TimeoutError. Raises OSError.
    """
    deadline = time.monotonic() + patience
    while True:
        os.makedirs(path.parent, mode=0o700, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the previous holder has just removed the folder
        try:
            _wait(descriptor, deadline)
            with suppress(FileNotFoundError):
                if os.stat(path, follow_symlinks=False).st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


@contextmanager
def file_lock(
    path: Path, *, inherit: bool, needed: bool = True, patience: float = math.inf
) -> Iterator[None]:
    """Hold a lock. With ``inherit``, child processes that inherit descriptors hold it, too.

    Raises MachineError if it cannot be taken; if it is not ``needed``, continues without it. An undo does not
    need it, because each step is atomic in the kernel and may be repeated.
    """
    descriptor = -1
    try:
        descriptor = take_lock(path, patience=patience)
        os.set_inheritable(descriptor, inherit)
    except OSError as e:
        if needed:
            raise MachineError(f"cannot lock {path}: {e.strerror or 'another command holds it'}") from e
    try:
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _wait(descriptor: int, deadline: float) -> None:
    if deadline == math.inf:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        if time.monotonic() >= deadline:
            raise TimeoutError
        time.sleep(_LOOK_SECONDS)
