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
    """Something that the user can understand; ``status`` is the exit status, as of all of nfparity."""

    def __init__(self, message: str, status: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.status = status


def reason(e: Exception) -> str:
    """Return what was wrong in the words of the system, without the path."""
    return e.strerror.lower() if isinstance(e, OSError) and e.strerror else str(e)


def status_of(e: Exception) -> int:
    """Return the exit status of a file that cannot be written.

    A path that cannot be is bad input; a full disk, a device that fails, missing rights are the machine's.
    """
    return BAD_INPUT if not isinstance(e, OSError) or e.errno in _OF_THE_PATH else MACHINE
