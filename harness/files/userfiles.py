"""Reading and writing of the user's files, with a message instead of a traceback for every failure."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.files.errors import BAD_INPUT, reason, status_of
from harness.files.output import Output
from harness.files.wholefiles import new_folder, write_file
from translate.errors import Diagnostic, InputError, MachineError, ParseError
from translate.ir import Origin
from translate.plaintext import plain

__all__ = ["STDIN_NAME", "filled_folder", "read_bytes", "read_text", "write_bytes", "write_text"]

STDIN_NAME = "<stdin>"


def read_bytes(path: Path | str) -> bytes:
    """Return a file's contents; ``-`` is standard input. InputError when it cannot be read."""
    if str(path) == "-" and sys.stdin is None:
        raise InputError(f"{STDIN_NAME}: cannot be read: standard input is closed")
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except (OSError, ValueError) as e:
        raise InputError(f"{path}: cannot be read: {reason(e)}") from e


def read_text(path: Path | str) -> str:
    """Return a text file's contents; ParseError when it is not UTF-8."""
    try:
        return plain(read_bytes(path), name=str(path)).decode("utf-8")
    except UnicodeDecodeError as e:
        raise ParseError((Diagnostic(Origin(str(path)), f"not UTF-8 text: {e.reason}"),)) from e


def write_text(path: Path | str, text: str) -> None:
    """Write a file as a whole, or standard output when ``path`` is ``-``.

    Bytes of the input that are not UTF-8 (an old comment) are written unchanged. Raises InputError for a path
    that cannot be written to, and MachineError for a full disk and the like; an existing file is then
    unchanged.
    """
    write_bytes(path, text.encode("utf-8", "surrogateescape"))


def write_bytes(path: Path | str, data: bytes) -> None:
    """Write bytes to a file or standard output; see :func:`write_text`."""
    if str(path) == "-":
        if isinstance(sys.stdout, Output):
            sys.stdout.write_exactly(data)
        else:
            sys.stdout.write(data.decode("utf-8", "surrogateescape"))
        return
    try:
        write_file(str(path), data)
    except (OSError, ValueError) as e:
        raise _not_written(path, e) from e


@contextmanager
def filled_folder(path: Path) -> Iterator[Path]:
    """Yield a folder to fill, which moves to ``path`` on success. Raises the errors of :func:`write_text`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_folder(str(path)) as made:
            yield made
    except (OSError, ValueError) as e:
        raise _not_written(path, e) from e


def _not_written(path: Path | str, e: Exception) -> InputError | MachineError:
    error_class = InputError if status_of(e) == BAD_INPUT else MachineError
    return error_class(f"{path}: cannot be written: {reason(e)}")
