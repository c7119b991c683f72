"""Files with the state needed for an undo, in a folder that only root can write to.

Contents that another user could have written are returned with the reason for this doubt. Every operation
that can fail because of the disk goes through this module's ``os``, so that tests can inject errors.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from translate.dataclass import dataclass
from translate.errors import MachineError

__all__ = [
    "Content",
    "OpenFile",
    "open_in_place",
    "prepare_folder",
    "read_content",
    "remove",
    "sync_folder",
    "write_durably",
]

_LARGEST: Final = 1 << 30
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Content:
    """The contents of a file. ``doubt`` is the reason why another user may have written it, or None."""

    data: bytes
    doubt: str | None


class OpenFile:
    """A file that is overwritten in place, which needs no further disk space. A context manager."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def size(self) -> int:
        """Return the length of the file in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self) -> bytes:
        """Return the contents of the file. Raises OSError."""
        return os.pread(self._descriptor, self.size(), 0)

    def write(self, data: bytes, at: int) -> None:
        """Write all of ``data`` and sync it, so that it survives a power cut. Raises OSError."""
        while data:
            written = os.pwrite(self._descriptor, data, at)
            data, at = data[written:], at + written
        os.fsync(self._descriptor)


def prepare_folder(folder: Path) -> None:
    """Create a folder and its parents, accessible only to root.

    Raises MachineError if that is not possible, and if other users can write to the folder: whoever can
    replace the saved rules decides what a rollback loads.
    """
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as e:
        raise MachineError(f"cannot make {folder}: {e.strerror}") from e
    if status.st_uid not in (0, os.geteuid()):
        raise MachineError(f"{folder} belongs to user {status.st_uid}, who could replace the files in it")
    if status.st_mode & _OTHERS_WRITE:
        raise MachineError(f"other users can write to {folder} (chmod go-w {folder})")


def read_content(path: Path) -> Content | None:
    """Return the contents of a file, or None without it. Raises MachineError if it cannot be read."""
    try:
        doubt = "it is a symbolic link" if path.is_symlink() else None
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if doubt is not None:
            raise MachineError(f"cannot read {path}: it is a dangling symbolic link") from None
        return None
    except OSError as e:
        raise MachineError(f"cannot read {path}: {e.strerror}") from e
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise MachineError(f"cannot read {path}: it is not a regular file")
        if status.st_size > _LARGEST:
            raise MachineError(f"cannot read {path}: it is larger than 1 GiB")
        if status.st_uid not in (0, os.geteuid()):
            doubt = f"it belongs to user {status.st_uid}"
        elif status.st_mode & _OTHERS_WRITE:
            doubt = "users other than root can write to it"
        return Content(OpenFile(descriptor).read(), doubt or _doubt_of_folder(path.parent))
    except OSError as e:
        raise MachineError(f"cannot read {path}: {e.strerror}") from e
    finally:
        os.close(descriptor)


def _doubt_of_folder(folder: Path) -> str | None:
    status = os.stat(folder)
    if status.st_uid not in (0, os.geteuid()) or status.st_mode & _OTHERS_WRITE:
        return f"users other than root can write to {folder}"
    return None


def open_in_place(path: Path) -> OpenFile | None:
    """Open a file to overwrite it; None if there is no such regular file. Raises OSError."""
    try:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return None
        return OpenFile(os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        return None


def write_durably(path: Path, data: bytes) -> None:
    """Write a file atomically and durably. Raises MachineError.

    Needs disk space for the old and the new contents together.
    """
    made = path.with_name(f"{path.name}.new")
    try:
        remove(made)
        descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with OpenFile(descriptor) as file:
            file.write(data, 0)
        os.replace(made, path)
        sync_folder(path.parent)
    except OSError as e:
        with suppress(OSError):
            remove(made)
        raise MachineError(f"cannot write {path}: {e.strerror}") from e


def remove(path: Path) -> None:
    """Delete a file if it exists. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder to disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
