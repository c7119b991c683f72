"""The files of a snapshot as input; faults are InputErrors."""

from __future__ import annotations

from collections.abc import Mapping

from harness.files.errors import CaptureError
from nfparity.capture import files
from nfparity.capture.files import is_snapshot
from translate.errors import InputError

__all__ = ["is_snapshot", "read_files"]


def read_files(path: str) -> Mapping[str, bytes]:
    """Return the files of a snapshot by name. InputError if it contains none, or cannot be read."""
    try:
        return files.read_files(path)
    except CaptureError as e:
        raise InputError(str(e)) from e
