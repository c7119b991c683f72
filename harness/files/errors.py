"""The error of a failed capture, with its exit status."""

from __future__ import annotations

import errno

__all__ = ["BAD_INPUT", "MACHINE", "CaptureError", "reason", "status_of"]

BAD_INPUT = 2
MACHINE = 3

_OF_THE_PATH = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ENAMETOOLONG),
    *(errno.ELOOP, errno.EINVAL),
)


class CaptureError(Exception):
    """A failed capture with a message for the user; ``status`` is the exit status."""

    def __init__(self, message: str, status: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.status = status


def reason(e: Exception) -> str:
    """Return the system's error message without the path."""
    return e.strerror.lower() if isinstance(e, OSError) and e.strerror else str(e)


def status_of(e: Exception) -> int:
    """Return the exit status for a file that cannot be written.

    An impossible path is bad input; a full disk, a failing device or missing rights are machine errors.
    """
    return BAD_INPUT if not isinstance(e, OSError) or e.errno in _OF_THE_PATH else MACHINE
