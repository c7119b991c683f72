"""Files of the user's: read in one place, so that every failure is a message instead of a traceback."""

from __future__ import annotations

import sys
from pathlib import Path

from translate.errors import Diagnostic, InputError, ParseError
from translate.ir import Origin

__all__ = ["STDIN_NAME", "read_bytes", "read_text", "write_text"]

STDIN_NAME = "<stdin>"


def read_bytes(path: Path | str) -> bytes:
    """Return a file's contents; ``-`` is standard input. InputError when it cannot be read."""
    if str(path) == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read: {_reason(e)}") from e


def read_text(path: Path | str) -> str:
    """Return a text file's contents; ParseError when it is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as e:
        raise ParseError((Diagnostic(Origin(str(path)), f"not UTF-8 text: {e.reason}"),)) from e


def write_text(path: Path | str, text: str) -> None:
    """Write a file, or standard output when ``path`` is ``-``. InputError when it cannot be written.

    Bytes of the input that are not UTF-8 (an old comment) are written as they were.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be written: {_reason(e)}") from e


def _reason(e: Exception) -> str:
    return e.strerror.lower() if isinstance(e, OSError) and e.strerror else str(e)
