"""One small record, stored twice in space that is reserved when it is first written.

The file has two slots of equal length, each a line of JSON padded with spaces. A record overwrites first the
slot that is not current and then the other one, each followed by a sync. So a crash in between leaves one
intact slot, the old or the new; damage to one slot loses nothing; and a full disk does not matter, because
overwriting needs no space (on file systems that write in place; on others the writer gets an error).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from nfparity.persistent_state.disk import OpenFile, open_in_place, read_content, write_durably
from translate.errors import MachineError

__all__ = ["read_record", "write_record"]

_PAGE: Final = 4096
_ROOM: Final = 2
"""The space reserved in a new file, as a multiple of its first record: later records grow a little."""


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record to disk. Raises MachineError; the previous record is then intact.

    Disk space is needed only for the first record, for a record that is too long for its slot, and if the
    file is damaged.
    """
    try:
        opened = open_in_place(path)
        if opened is not None:
            with opened as file:
                if _overwrite(file, record):
                    return
    except OSError as e:
        raise MachineError(f"cannot write {path}: {e.strerror}") from e
    line = _line(record, 1)
    size = -(-len(line) * _ROOM // _PAGE) * _PAGE
    write_durably(path, _padded(line, size) * 2)


def read_record(path: Path) -> Mapping[str, Any] | None:
    """Return the record, None if there is no file. Raises MachineError if neither slot is intact.

    A file that consists of one JSON object, as written by older versions, is also read.
    """
    content = read_content(path)
    if content is None:
        return None
    if content.doubt is not None:
        raise MachineError(f"{path} cannot be trusted: {content.doubt}")
    newest = max(_slots(content.data), key=lambda slot: slot[0], default=None)
    if newest is not None:
        return newest[2]
    with suppress(ValueError, RecursionError):
        older = json.loads(content.data)
        if isinstance(older, dict) and "sequence" not in older:
            return older
    raise MachineError(f"{path} is damaged")


def _overwrite(file: OpenFile, record: Mapping[str, Any]) -> bool:
    """Write both slots; return False if there are none, or they are too short. Raises OSError."""
    data = file.read()
    size = len(data) // 2
    newest = max(_slots(data), default=None, key=lambda slot: slot[0])
    line = _line(record, 1 if newest is None else newest[0] + 1)
    if newest is None or size % _PAGE or len(line) > size:
        return False
    current = newest[1]
    try:
        file.write(_padded(line, size), (1 - current) * size)
    except OSError:
        with suppress(OSError):  # discard cached data that did not reach the disk
            file.write(data[(1 - current) * size :][:size], (1 - current) * size)
        raise
    with suppress(OSError):
        file.write(_padded(line, size), current * size)
    return True


def _slots(data: bytes) -> list[tuple[int, int, Mapping[str, Any]]]:
    """Return sequence, number and record of every intact slot."""
    size = len(data) // 2
    slots: list[tuple[int, int, Mapping[str, Any]]] = []
    for number in range(2):
        with suppress(ValueError, KeyError, TypeError, RecursionError):
            slot = json.loads(data[number * size :][:size])
            record, sequence = slot["record"], int(slot["sequence"])
            if isinstance(record, dict) and slot["sha256"] == _digest(record, sequence):
                slots.append((sequence, number, record))
    return slots


def _line(record: Mapping[str, Any], sequence: int) -> bytes:
    slot = {"sequence": sequence, "sha256": _digest(record, sequence), "record": record}
    return f"{json.dumps(slot)}\n".encode()


def _digest(record: Mapping[str, Any], sequence: int) -> str:
    return hashlib.sha256(f"{sequence} {json.dumps(record, sort_keys=True)}".encode()).hexdigest()


def _padded(line: bytes, size: int) -> bytes:
    return line.rstrip(b"\n").ljust(size - 1) + b"\n"
