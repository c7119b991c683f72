"""Atomic creation of files and folders: they appear complete, or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

__all__ = ["new_folder", "write_file"]

_MOST_LINKS = 40


def write_file(path: str, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file: the old content stays until all of the new content is on the disk. Raises OSError.

    An existing file keeps its mode, its owner if possible, and the symbolic links to it; a new file gets
    ``mode`` less the umask. Special files (``/dev/stdout``, a FIFO, a device) are written in place, and so
    are files in a folder where no file can be created (a file mounted into a container).
    """
    target = _followed(path)
    try:
        old: os.stat_result | None = os.stat(target)
    except FileNotFoundError:
        old = None
    if old is not None and stat.S_ISDIR(old.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if _is_descriptor(target) or (old is not None and not stat.S_ISREG(old.st_mode)):
        _write_through(target, data)
        return
    made = _beside(target)
    try:
        _write_new(made, data, mode, old)
        os.replace(made, target)
    except OSError as e:
        _remove(made)
        if old is None or e.errno not in (errno.EACCES, errno.EPERM, errno.EBUSY, errno.EROFS):
            raise
        _write_through(target, data)
    except BaseException:
        _remove(made)
        raise


@contextlib.contextmanager
def new_folder(path: str, *, mode: int = 0o777) -> Iterator[Path]:
    """Yield a folder to fill, which then moves to ``path``. Raises OSError, also when ``path`` exists.

    When the caller fails, the folder is removed.
    """
    path = path.rstrip("/") or "/"
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
    made = _beside(path)
    os.mkdir(made, mode)
    try:
        yield Path(made)
        os.rename(made, path)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise


def _beside(target: str) -> str:
    return os.path.join(os.path.dirname(target), f".nfparity-{secrets.token_hex(8)}.part")


def _followed(path: str) -> str:
    """Return the path with links resolved, except those of ``/proc`` to open files without a path."""
    for _ in range(_MOST_LINKS):
        if _is_descriptor(path) or not os.path.islink(path):
            return path
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _is_descriptor(path: str) -> bool:
    return os.path.realpath(os.path.dirname(path)).startswith("/proc/") and os.path.islink(path)


def _write_through(target: str, data: bytes) -> None:
    """Write into an existing file. A descriptor of this process is written at its position, not truncated."""
    folder, name = os.path.split(target)
    if os.path.realpath(folder) == f"/proc/{os.getpid()}/fd":
        opened = os.dup(int(name))
    else:
        opened = os.open(target, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    with open(opened, "wb") as file:
        file.write(data)


def _write_new(made: str, data: bytes, mode: int, old: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(made, flags, mode), "wb") as file:
        file.write(data)
        file.flush()
        if old is not None:
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        os.fsync(file.fileno())


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
