"""Why there is no snapshot, with the exit status that says so."""

from __future__ import annotations

__all__ = ["BAD_INPUT", "MACHINE", "CaptureError"]

BAD_INPUT = 2
MACHINE = 3


class CaptureError(Exception):
    """Something that the user can understand; ``status`` is the exit status, as of all of nfparity."""

    def __init__(self, message: str, status: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.status = status
