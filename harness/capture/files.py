"""Snapshots as files: a folder, or a ``.tar.gz``, which is read and never unpacked.

No name in an archive can lead anywhere, since nothing is written where it says. An archive may come
from a machine that is not trusted, so its size is bounded while it is being decompressed.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.capture.errors import CaptureError

__all__ = ["FILES", "MOST_BYTES", "RULE_FILES", "is_snapshot", "read_files", "write_files"]

RULE_FILES = (
    *("iptables-save", "iptables-legacy-save", "iptables-nft-save"),
    *("ip6tables-save", "ip6tables-legacy-save", "ip6tables-nft-save"),
)
"""The files with rules: a family's in one file, or in one for each stack when both hold some."""

FILES = frozenset(
    {
        *RULE_FILES,
        *("ipset-save", "nft.json", "addr.json", "route.json", "route6.json", "rule.json", "rule6.json"),
        *("sysctl.json", "meta.json", "objects.json"),
    }
)
"""Every file that a snapshot can have; others in the folder are not looked at."""

MOST_BYTES = 1 << 30
"""How much an archive may hold, all in all. The rules of 10,000 services are some 30 MB."""

_MOST_MEMBERS = 1000
_GZIP = b"\x1f\x8b"


def is_snapshot(path: str) -> bool:
    """Whether ``path`` is a folder or a ``.tar.gz`` (told by its first bytes), hence no file of rules."""
    if path == "-":
        return False
    try:
        if Path(path).is_dir():
            return True
        with open(path, "rb") as file:
            return file.read(2) == _GZIP
    except (OSError, ValueError):
        return False  # whoever reads it says what is wrong


def read_files(path: str) -> dict[str, bytes]:
    """Return the files of a snapshot by name. CaptureError when it holds none, or cannot be read."""
    found = _of_folder(Path(path)) if Path(path).is_dir() else _of_archive(path)
    if not found:
        raise CaptureError(f"{path}: no snapshot: none of {', '.join(sorted(FILES))} is in it")
    return found


def write_files(path: str, files: Mapping[str, bytes], *, now: float) -> None:
    """Write a snapshot: to standard output (``-``), a ``.tar.gz`` or else a folder, which must not be there.

    Nobody but the user can read it, and a file is there as a whole or not at all. ``now`` is the time
    that the files of an archive bear. Raises CaptureError.
    """
    try:
        if path == "-":
            sys.stdout.buffer.write(_packed(files, now))
            sys.stdout.buffer.flush()
        elif path.endswith((".tar.gz", ".tgz")):
            if os.path.lexists(path):
                raise CaptureError(f"{path}: is there already")
            _write(path + ".part", _packed(files, now))
            os.rename(path + ".part", path)
        else:
            os.mkdir(path, 0o700)
            for name, data in files.items():
                _write(os.path.join(path, name), data)
    except OSError as e:
        raise CaptureError(f"{path}: cannot be written: {_reason(e)}") from e


def _write(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with open(file, "wb") as opened:
        opened.write(data)


def _packed(files: Mapping[str, bytes], now: float) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), 0o600, int(now)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _of_folder(folder: Path) -> dict[str, bytes]:
    try:
        return {name: (folder / name).read_bytes() for name in sorted(FILES) if (folder / name).is_file()}
    except OSError as e:
        raise CaptureError(f"{e.filename}: cannot be read: {_reason(e)}") from e


def _of_archive(path: str) -> dict[str, bytes]:
    try:
        with gzip.open(path) as unpacked:
            bounded = _Bounded(unpacked, path)
            with tarfile.open(fileobj=bounded, mode="r|") as archive:
                found = _members(archive, path)
            # The check sum stands at the very end: without it, an archive that was cut could pass.
            while bounded.read(1 << 20):
                pass
            return found
    except (OSError, EOFError, zlib.error, tarfile.TarError) as e:
        raise CaptureError(f"{path}: not a .tar.gz that can be read: {_reason(e)}") from e


def _members(archive: tarfile.TarFile, path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    folders: set[str] = set()
    for number, member in enumerate(archive, 1):
        if number > _MOST_MEMBERS:
            raise CaptureError(f"{path}: more than {_MOST_MEMBERS} files: this is no snapshot")
        place = PurePosixPath(member.name)
        if place.is_absolute() or ".." in place.parts:
            raise CaptureError(f"{path}: {member.name!r} leads out of the archive; it is not read")
        if place.name not in FILES or len(place.parts) > 2 or not member.isreg():
            continue
        folders.add(str(place.parent))
        if len(folders) > 1:
            places = " and ".join(sorted(folders))
            raise CaptureError(f"{path}: snapshots in {places}; an archive holds one")
        if place.name in found:
            raise CaptureError(f"{path}: {place.name} is in it twice")
        content = archive.extractfile(member)
        assert content is not None
        found[place.name] = content.read()
    return found


def _reason(e: Exception) -> str:
    return e.strerror.lower() if isinstance(e, OSError) and e.strerror else str(e)


class _Bounded(io.RawIOBase):
    """Hands on what a file holds, up to :data:`MOST_BYTES`; CaptureError beyond.

    Counted here and not by what the headers say: a header can itself be long, or lie.
    """

    def __init__(self, file: gzip.GzipFile, path: str) -> None:
        self._file = file
        self._path = path
        self._left = MOST_BYTES

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._file.read(min(self._left + 1, size) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise CaptureError(f"{self._path}: holds more than {MOST_BYTES >> 20} MiB: this is no snapshot")
        return data
