"""A log file with its space reserved in advance: empty lines, which log lines overwrite."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from nfparity.persistent_state.disk import open_in_place, read_content, write_durably
from translate.errors import MachineError

__all__ = ["ReservedLog"]

_FILLING: Final = b"\n\0"
"""Bytes of unused space; after a crash, space that was not yet written reads as NUL."""


class ReservedLog:
    """A text file with a line for each event; every line is on disk when :meth:`add` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, room: int) -> None:
        """Create the file again, empty, with space for ``room`` bytes. Raises MachineError."""
        write_durably(self.path, b"\n" * room)

    def add(self, line: str) -> None:
        """Add a line; the file grows if the reserved space is used up. Raises MachineError."""
        try:
            opened = open_in_place(self.path)
            if opened is None:
                raise MachineError(f"cannot write {self.path}: there is no such file")
            with opened as file:
                end = len(file.read().rstrip(_FILLING))
                file.write(f"\n{line}\n".encode() if end else f"{line}\n".encode(), end)
        except OSError as e:
            raise MachineError(f"cannot write {self.path}: {e.strerror}") from e

    def lines(self) -> tuple[bytes, ...]:
        """Return the lines of the log, as bytes because the file may be damaged; empty if there is no file.

        Raises MachineError if it cannot be read.
        """
        content = read_content(self.path)
        if content is None:
            return ()
        return tuple(line for line in content.data.split(b"\n") if line.strip(_FILLING))
