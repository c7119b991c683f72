"""The bpf(2) calls for maps and programs, without BCC.

Attributes are packed by hand, as in ``union bpf_attr`` of ``linux/bpf.h``. Functions raise OSError.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from pathlib import Path
from typing import Final

from translate.dataclass import dataclass
from translate.errors import MachineError

__all__ = [
    "MapInfo",
    "create_map",
    "delete_batch",
    "load_program",
    "load_types",
    "lookup",
    "lookup_batch",
    "map_info",
    "next_key",
    "open_pinned",
    "pin",
    "program_number",
    "types_of",
    "update",
    "update_batch",
]

_CALL: Final = {"x86_64": 321, "aarch64": 280}
_CREATE, _LOOKUP, _UPDATE, _NEXT_KEY, _LOAD, _PIN, _GET, _INFO = 0, 1, 2, 4, 5, 6, 7, 15
_LOAD_TYPES, _OPEN_TYPES = 18, 19
_SCHED_CLS: Final = 3  # BPF_PROG_TYPE_SCHED_CLS
_TYPES_AT: Final = 64  # offset of btf_id in struct bpf_map_info
_MOST_TIMES: Final = 10
"""The number of times that a program is loaded if signals interrupt the verifier."""
_LOOKUP_BATCH, _UPDATE_BATCH, _DELETE_BATCH = 24, 26, 27


@dataclass(frozen=True, slots=True, kw_only=True)
class MapInfo:
    """The kernel's description of a map (``struct bpf_map_info``).

    ``kind`` is a number of ``enum bpf_map_type``; sizes are in bytes. ``types`` is the number of the BTF
    object that describes keys and values by the type numbers ``key_type`` and ``value_type``; all three are 0
    for a map without BTF.
    """

    kind: int
    number: int
    key_size: int
    value_size: int
    max_entries: int
    flags: int
    types: int
    key_type: int
    value_type: int


def pin(path: Path, descriptor: int) -> None:
    """Pin a map or a program, which keeps it loaded."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    _call(_PIN, struct.pack("=QII", ctypes.addressof(name), descriptor, 0))


def open_pinned(path: Path) -> int:
    """Return a descriptor of a pinned map or program."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return _call(_GET, struct.pack("=QII", ctypes.addressof(name), 0, 0))


def map_info(descriptor: int) -> MapInfo:
    """Return the kernel's description of a map."""
    info = _info(descriptor)
    kind, number, key, value, size, flags = struct.unpack_from("=6I", info)
    types, key_type, value_type = struct.unpack_from("=3I", info, _TYPES_AT)
    return MapInfo(
        kind=kind,
        number=number,
        key_size=key,
        value_size=value,
        max_entries=size,
        flags=flags,
        types=types,
        key_type=key_type,
        value_type=value_type,
    )


def types_of(number: int) -> bytes:
    """Return the BTF object of this number (``BPF_BTF_GET_FD_BY_ID``, ``struct bpf_btf_info``)."""
    descriptor = _call(_OPEN_TYPES, struct.pack("=I", number) + bytes(12))
    try:
        (size,) = struct.unpack_from("=8xI", _info(descriptor))
        data = ctypes.create_string_buffer(size)
        _info(descriptor, struct.pack("=QI", ctypes.addressof(data), size))
        return data.raw
    finally:
        os.close(descriptor)


def load_types(data: bytes) -> int:
    """Load ``data`` as a BTF object and return its descriptor."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return _call(_LOAD_TYPES, struct.pack("=QQIII4x", ctypes.addressof(buffer), 0, len(data), 0, 0))


def create_map(name: str, info: MapInfo, types: int) -> int:
    """Create a map like ``info`` and return its descriptor; ``types`` is the descriptor of its BTF object."""
    of_types = (types, info.key_type, info.value_type) if info.types else (0, 0, 0)
    sizes = (info.kind, info.key_size, info.value_size, info.max_entries, info.flags)
    return _call(_CREATE, struct.pack("=5III16sI3I", *sizes, 0, 0, name.encode()[:15], 0, *of_types))


def load_program(name: str, instructions: bytes) -> int:
    """Load a tc program, without the verifier's log, and return its descriptor.

    A signal makes the verifier give up with EAGAIN (do_check); the program is then loaded again.
    """
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    license_ = ctypes.create_string_buffer(b"GPL")
    code = (_SCHED_CLS, len(instructions) // 8, ctypes.addressof(buffer), ctypes.addressof(license_))
    request = struct.pack("=IIQQIIQII16s", *code, 0, 0, 0, 0, 0, name.encode()[:15])
    for _ in range(_MOST_TIMES - 1):
        with contextlib.suppress(BlockingIOError):
            return _call(_LOAD, request)
    return _call(_LOAD, request)


def program_number(descriptor: int) -> int:
    """Return the kernel's number of a program, which listings of filters show."""
    _, number = struct.unpack_from("=2I", _info(descriptor))
    return int(number)


def lookup(descriptor: int, key: bytes, width: int) -> bytes | None:
    """Return the value of a key, in ``width`` bytes, or None."""
    key_buffer, value = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(width)
    at = struct.pack("=I4xQQQ", descriptor, ctypes.addressof(key_buffer), ctypes.addressof(value), 0)
    try:
        _call(_LOOKUP, at)
    except FileNotFoundError:
        return None
    return value.raw


def next_key(descriptor: int, key: bytes | None, size: int) -> bytes | None:
    """Return the key after ``key``, or the first key for None; None after the last key."""
    key_buffer = ctypes.create_string_buffer(key, size) if key is not None else None
    following = ctypes.create_string_buffer(size)
    at = ctypes.addressof(key_buffer) if key_buffer is not None else 0
    try:
        _call(_NEXT_KEY, struct.pack("=I4xQQ", descriptor, at, ctypes.addressof(following)))
    except FileNotFoundError:
        return None
    return following.raw


def lookup_batch(
    descriptor: int, token: bytes | None, count: int, size: int, width: int
) -> tuple[bytes, bytes, bytes, bool]:
    """Read up to ``count`` entries of a hash, after ``token``.

    Return the next token, keys, values, and whether these are the last. An OSError with ``ENOSPC`` means that
    ``count`` is too small for one of the hash's buckets.
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
    (filled,) = struct.unpack_from("=I", attributes, 32)
    return after.raw, keys.raw[: size * filled], values.raw[: width * filled], last


def update(descriptor: int, key: bytes, value: bytes) -> None:
    """Write one entry, for maps of programs, which do not support batches."""
    key_buffer = ctypes.create_string_buffer(key, len(key))
    value_buffer = ctypes.create_string_buffer(value, len(value))
    at = struct.pack("=I4xQQQ", descriptor, ctypes.addressof(key_buffer), ctypes.addressof(value_buffer), 0)
    _call(_UPDATE, at)


def update_batch(descriptor: int, keys: bytes, values: bytes, count: int) -> None:
    """Write entries in order, up to one that is refused."""
    value_buffer = ctypes.create_string_buffer(values, len(values))
    key_buffer = ctypes.create_string_buffer(keys, len(keys))
    _call_with(_UPDATE_BATCH, _batch(descriptor, count, key_buffer, value_buffer))


def delete_batch(descriptor: int, keys: bytes, count: int) -> None:
    """Delete entries in order, up to one that is missing."""
    key_buffer = ctypes.create_string_buffer(keys, len(keys))
    _call_with(_DELETE_BATCH, _batch(descriptor, count, key_buffer, None))


_Buffer = ctypes.Array[ctypes.c_char]


def _batch(
    descriptor: int, count: int, keys: _Buffer, values: _Buffer | None, before: int = 0, after: int = 0
) -> _Buffer:
    values_at = ctypes.addressof(values) if values is not None else 0
    packed = struct.pack("=4Q2I2Q", before, after, ctypes.addressof(keys), values_at, count, descriptor, 0, 0)
    return ctypes.create_string_buffer(packed, len(packed))


def _info(descriptor: int, query: bytes = b"") -> bytes:
    info = ctypes.create_string_buffer(query, 256)
    _call(_INFO, struct.pack("=IIQ", descriptor, len(info), ctypes.addressof(info)))
    return info.raw


def _call(command: int, attributes: bytes) -> int:
    return _call_with(command, ctypes.create_string_buffer(attributes, len(attributes)))


def _call_with(command: int, attributes: _Buffer) -> int:
    number = _CALL.get(platform.machine())
    if number is None:
        raise MachineError(f"nfparity has no system call number of bpf for {platform.machine()}")
    result = int(_LIBC.syscall(number, command, attributes, len(attributes)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


_LIBC: Final = ctypes.CDLL(None, use_errno=True)
