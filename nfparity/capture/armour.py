"""A snapshot as lines of text with a checksum, to be read back from a container's log."""

from __future__ import annotations

import base64
import hashlib
import re

from harness.files.errors import CaptureError

__all__ = ["armoured", "dearmoured"]

_BEGIN = "-----BEGIN NFPARITY SNAPSHOT-----"
_END = "-----END NFPARITY SNAPSHOT-----"
_LINE = 3072
"""Bytes of the archive in a line. Container runtimes add a time stamp to each line and split long ones."""

_DATA = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def armoured(archive: bytes) -> str:
    """Return an archive as text: base64 between two marks, and its SHA-256."""
    lines = [_BEGIN]
    for start in range(0, len(archive), _LINE):
        lines.append(base64.b64encode(archive[start : start + _LINE]).decode("ascii"))
    lines.append(f"{_END} {hashlib.sha256(archive).hexdigest()}")
    return "\n".join(lines) + "\n"


def dearmoured(log: str) -> bytes:
    """Return the archive in a log; other lines (messages) are ignored. Raises CaptureError without one."""
    lines = log.splitlines()
    ends = [(number, line.split()) for number, line in enumerate(lines) if line.startswith(f"{_END} ")]
    if not ends:
        begun = "; it breaks off" if _BEGIN in lines else ""
        raise CaptureError(f"the log contains no snapshot{begun}{_last_message(lines)}")
    end, words = ends[-1]
    if _BEGIN not in lines[:end]:
        raise CaptureError(
            "the beginning of the log is missing: the kubelet keeps only the end of a log that is larger "
            "than its containerLogMaxSize"
        )
    begin = max(number for number, line in enumerate(lines[:end]) if line == _BEGIN)
    data = [line for line in lines[begin + 1 : end] if _DATA.fullmatch(line)]
    try:
        archive = b"".join(base64.b64decode(line, validate=True) for line in data)
    except ValueError:
        archive = b""
    if hashlib.sha256(archive).hexdigest() != words[-1]:
        raise CaptureError("the snapshot in the log is damaged: its checksum differs")
    return archive


def _last_message(lines: list[str]) -> str:
    messages = [line for line in lines if not _DATA.fullmatch(line) and not line.startswith("-----")]
    return f"; its last line: {messages[-1]}" if messages else ""
