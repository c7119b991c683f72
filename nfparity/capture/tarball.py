"""Reader of regular files in a tar archive of unknown origin.

POSIX.1-1988 (ustar), POSIX.1-2001 (pax) and GNU archives (tar(5) of libarchive describes all three).
Python's ``tarfile`` is not used: it allocates as much memory as the header of a sparse member claims, reads
headers of any length, and does not terminate on a truncated sparse map.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from harness.files.errors import CaptureError

__all__ = ["read_members"]

_BLOCK = 512
_PIECE = 1 << 20
_MOST_HEADER = 1 << 16
"""The limit for a pax header or a long name, in bytes; a path has at most 4,096."""
_REGULAR = b"07\0"
_WITHOUT_DATA = b"123456"
_PAX, _PAX_FOR_ALL, _LONG_NAME, _LONG_LINK, _SPARSE = b"x", b"g", b"L", b"K", b"S"


class Source(Protocol):
    """The source that an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """Return up to ``size`` bytes, none at the end."""


def read_members(
    file: Source, wanted: Callable[[str], bool], *, most_members: int
) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of every regular file for whose name ``wanted`` is true; skip all others.

    ``file`` must limit the number of bytes. Raises CaptureError for more than ``most_members`` headers, for
    sparse members, and for files that are not an archive.
    """
    name: str | None = None
    length: int | None = None
    for _ in range(most_members):
        header = _exactly(file, _BLOCK)
        if header is None or not any(header):
            return
        kind, size = _kind(header), _number(header[124:136])
        if kind in (_PAX, _PAX_FOR_ALL, _LONG_NAME, _LONG_LINK):
            if size > _MOST_HEADER:
                raise CaptureError(f"a header of {size} bytes; at most {_MOST_HEADER} are read")
            data = _data(file, size)
            if kind == _PAX:
                name, length = _pax(data, name)
            elif kind == _LONG_NAME:
                name = _text(data.split(b"\0", 1)[0])
            continue
        if kind == _SPARSE:
            raise CaptureError("a sparse member, whose size cannot be trusted: pack it without --sparse")
        name = _name(header) if name is None else name
        size = 0 if kind in _WITHOUT_DATA else size if length is None else length
        if kind in _REGULAR and not name.endswith("/") and wanted(name):
            yield name, _data(file, size)
        else:
            _skip(file, size)
        name = length = None
    raise CaptureError(f"more than {most_members} files: not a snapshot")


def _exactly(file: Source, size: int) -> bytes | None:
    """Return the next ``size`` bytes; None at the end of the file."""
    parts = []
    while size:
        part = file.read(min(size, _PIECE))  # in pieces, because read allocates the requested size
        if not part:
            break
        parts.append(part)
        size -= len(part)
    if size and parts:
        raise CaptureError("the archive is cut short")
    return None if size else b"".join(parts)


def _data(file: Source, size: int) -> bytes:
    data = _exactly(file, -(-size // _BLOCK) * _BLOCK) if size else b""
    if data is None:
        raise CaptureError("the archive is cut short")
    return data[:size]


def _skip(file: Source, size: int) -> None:
    left = -(-size // _BLOCK) * _BLOCK
    while left:
        part = file.read(min(left, _PIECE))
        if not part:
            raise CaptureError("the archive is cut short")
        left -= len(part)


def _kind(header: bytes) -> bytes:
    claimed = _number(header[148:156])
    # Some old archivers summed up signed bytes.
    rest = header[:148] + b" " * 8 + header[156:]
    if claimed not in (sum(rest), sum(b - 256 if b > 127 else b for b in rest)):
        raise CaptureError("a header with a wrong checksum: not a tar archive")
    return header[156:157]


def _number(field: bytes) -> int:
    """Return a number in octal digits, or in base 256 if the highest bit is set."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big") & ~(0x80 << 8 * (len(field) - 1))
        if field[0] == 0xFF:
            raise CaptureError("a negative number in a header")
        return value
    digits = field.strip(b" \0") or b"0"
    if digits.strip(b"01234567"):
        raise CaptureError("not a number in a header: not a tar archive")
    return int(digits, 8)


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    if header[257:263] == b"ustar\0":
        before = header[345:500].split(b"\0", 1)[0]
        name = before + b"/" + name if before else name
    return _text(name)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _pax(data: bytes, name: str | None) -> tuple[str | None, int | None]:
    """Return the name and size of the next member according to its records ``LENGTH KEY=VALUE``."""
    length: int | None = None
    while data:
        digits, space, _ = data.partition(b" ")
        size = int(digits) if digits.isdigit() and len(digits) < 8 else 0
        record, data = data[len(digits) + 1 : size - 1], data[size:]
        key, equals, value = record.partition(b"=")
        if not space or not equals or size <= len(digits) + 1:
            raise CaptureError("an invalid pax header")
        if key.startswith(b"GNU.sparse."):
            raise CaptureError("a sparse member, whose size cannot be trusted: pack it without --sparse")
        if key == b"path":
            name = _text(value)
        elif key == b"size":
            if not value.isdigit() or len(value) > 20:
                raise CaptureError("an invalid pax header")
            length = int(value)
    return name, length
