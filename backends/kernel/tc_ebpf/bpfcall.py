"""The bpf(2) calls that pinned maps and programs need, without the library that compiles.

Attributes are packed by hand, after ``union bpf_attr`` of ``linux/bpf.h``. Functions raise OSError.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = [
    "MapInfo",
    "delete_batch",
    "lookup",
    "lookup_batch",
    "map_info",
    "next_key",
    "open_pinned",
    "pin",
    "program_number",
    "update_batch",
]

_CALL: Final = {"x86_64": 321, "aarch64": 280}
_LOOKUP, _NEXT_KEY, _PIN, _GET, _INFO = 1, 4, 6, 7, 15
_LOOKUP_BATCH, _UPDATE_BATCH, _DELETE_BATCH = 24, 26, 27


@dataclass(frozen=True, slots=True, kw_only=True)
class MapInfo:
    """What the kernel says of a map; ``kind`` is ``enum bpf_map_type``, sizes are bytes."""

    kind: int
    number: int
    key_size: int
    value_size: int
    room: int


def pin(path: Path, descriptor: int) -> None:
    """Give a map or a program a name that keeps it."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    _call(_PIN, struct.pack("=QII", ctypes.addressof(name), descriptor, 0))


def open_pinned(path: Path) -> int:
    """Return a descriptor of what is pinned there."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return _call(_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def map_info(descriptor: int) -> MapInfo:
    """Return what is known of a map."""
    kind, number, key, value, room = struct.unpack_from("=5I", _info(descriptor))
    return MapInfo(kind=kind, number=number, key_size=key, value_size=value, room=room)


def program_number(descriptor: int) -> int:
    """Return the kernel's number of a program, as a listing of filters has it."""
    _, number = struct.unpack_from("=2I", _info(descriptor))
    return int(number)


def lookup(descriptor: int, key: bytes, width: int) -> bytes | None:
    """Return the value of a key, of ``width`` bytes; None if it is not there."""
    held, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(width)
    at = struct.pack("=I4xQQQ", descriptor, ctypes.addressof(held), ctypes.addressof(value), 0)
    try:
        _call(_LOOKUP, at)
    except FileNotFoundError:
        return None
    return value.raw


def next_key(descriptor: int, key: bytes | None, size: int) -> bytes | None:
    """Return the key after another, or the first; None after the last."""
    held = ctypes.create_string_buffer(key, size) if key is not None else None
    following = ctypes.create_string_buffer(size)
    at = ctypes.addressof(held) if held is not None else 0
    try:
        _call(_NEXT_KEY, struct.pack("=I4xQQ", descriptor, at, ctypes.addressof(following)))
    except FileNotFoundError:
        return None
    return following.raw


def lookup_batch(
    descriptor: int, token: bytes | None, count: int, size: int, width: int
) -> tuple[bytes, bytes, bytes, bool]:
    """Read up to ``count`` entries of a hash, after ``token``.

    Returns the next token, keys, values, and whether these are the last. ``ENOSPC`` asks for a greater count.
    """
    before = ctypes.create_string_buffer(token, len(token)) if token is not None else None
    after = ctypes.create_string_buffer(max(size, 4))
    keys, values = ctypes.create_string_buffer(size * count), ctypes.create_string_buffer(width * count)
    at = ctypes.addressof(before) if before is not None else 0
    attributes = _batch(descriptor, count, keys, values, at, ctypes.addressof(after))
    last = False
    try:
        _call_with(_LOOKUP_BATCH, attributes)
    except FileNotFoundError:
        last = True
    (found,) = struct.unpack_from("=I", attributes, 32)
    return after.raw, keys.raw[: size * found], values.raw[: width * found], last


def update_batch(descriptor: int, keys: bytes, values: bytes, count: int) -> None:
    """Write entries, one after the other, up to one that is refused."""
    given = ctypes.create_string_buffer(values, len(values))
    held = ctypes.create_string_buffer(keys, len(keys))
    _call_with(_UPDATE_BATCH, _batch(descriptor, count, held, given))


def delete_batch(descriptor: int, keys: bytes, count: int) -> None:
    """Delete entries, one after the other, up to one that is not there."""
    held = ctypes.create_string_buffer(keys, len(keys))
    _call_with(_DELETE_BATCH, _batch(descriptor, count, held, None))


_Buffer = ctypes.Array[ctypes.c_char]


def _batch(
    descriptor: int, count: int, keys: _Buffer, values: _Buffer | None, before: int = 0, after: int = 0
) -> _Buffer:
    given = ctypes.addressof(values) if values is not None else 0
    packed = struct.pack("=4Q2I2Q", before, after, ctypes.addressof(keys), given, count, descriptor, 0, 0)
    return ctypes.create_string_buffer(packed, len(packed))


def _info(descriptor: int) -> bytes:
    found = ctypes.create_string_buffer(256)
    _call(_INFO, struct.pack("=IIQ", descriptor, len(found), ctypes.addressof(found)))
    return found.raw


def _call(command: int, attributes: bytes) -> int:
    return _call_with(command, ctypes.create_string_buffer(attributes, len(attributes)))


def _call_with(command: int, attributes: _Buffer) -> int:
    number = _CALL.get(platform.machine())
    if number is None:
        raise MachineError(f"bpf(2) of {platform.machine()} has no number here")
    result = int(_LIBC.syscall(number, command, attributes, len(attributes)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


_LIBC: Final = ctypes.CDLL(None, use_errno=True)
