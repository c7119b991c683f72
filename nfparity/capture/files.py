"""Snapshots as files: a folder, or a ``.tar.gz``, which is read without unpacking it.

Names in an archive are never used as paths. An archive may come from a machine that is not trusted, so its
size is limited during decompression.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from harness.files.errors import CaptureError, reason, status_of
from harness.files.output import Output
from harness.files.wholefiles import new_folder, write_file
from nfparity.capture.tarball import read_members

__all__ = ["FILES", "MOST_BYTES", "RULE_FILES", "is_snapshot", "packed", "read_files", "write_files"]

RULE_FILES = (
    *("iptables-save", "iptables-legacy-save", "iptables-nft-save"),
    *("ip6tables-save", "ip6tables-legacy-save", "ip6tables-nft-save"),
)
"""The files with rules: one per family, or one per family and variant if both variants have rules."""

FILES = frozenset(
    {
        *RULE_FILES,
        *(
            "ipset-save",
            "ipvs-save",
            "nft.json",
            "addr.json",
            "route.json",
            "route6.json",
            "rule.json",
            "rule6.json",
        ),
        *("sysctl.json", "meta.json", "objects.json"),
    }
)
"""Every file that a snapshot can contain; other files in the folder are ignored."""

MOST_BYTES = 1 << 30
"""The size limit of an archive. The rules of 10,000 services are some 30 MB."""

_MOST_MEMBERS = 1000
_GZIP = b"\x1f\x8b"


def is_snapshot(path: str) -> bool:
    """Return whether ``path`` is a snapshot: a folder or a ``.tar.gz`` (by its first bytes)."""
    if path == "-":
        return False
    try:
        if Path(path).is_dir():
            return True
        with open(path, "rb") as file:
            return file.read(2) == _GZIP
    except (OSError, ValueError):
        return False  # the later read reports the error


def read_files(path: str) -> dict[str, bytes]:
    """Return the files of a snapshot by name. CaptureError if it contains none, or cannot be read."""
    files = _of_folder(Path(path)) if Path(path).is_dir() else _of_archive(path)
    if not files:
        raise CaptureError(f"{path}: not a snapshot: contains none of {', '.join(sorted(FILES))}")
    return files


def write_files(path: str, files: Mapping[str, bytes], *, now: float) -> None:
    """Write a snapshot to standard output (``-``), a new ``.tar.gz`` or a new folder, which must not exist.

    Only the user can read it, and it is created completely or not at all. ``now`` is the modification time of
    the files in an archive. Raises CaptureError.
    """
    try:
        if path == "-":
            _to_standard_output(packed(files, now=now))
        elif path.endswith((".tar.gz", ".tgz")):
            if os.path.lexists(path):
                raise CaptureError(f"{path}: already exists")
            write_file(path, packed(files, now=now), mode=0o600)
        else:
            with new_folder(path, mode=0o700) as made:
                for name, data in files.items():
                    write_file(str(made / name), data, mode=0o600)
    except OSError as e:
        raise CaptureError(f"{path}: cannot be written: {reason(e)}", status_of(e)) from e


def _to_standard_output(data: bytes) -> None:
    if isinstance(sys.stdout, Output):
        sys.stdout.write_exactly(data)
    else:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def packed(files: Mapping[str, bytes], *, now: float) -> bytes:
    """Return a snapshot as a ``.tar.gz``; ``now`` is the modification time of its files."""
    import tarfile  # dear to import, and most commands write no archive

    archived = io.BytesIO()
    with tarfile.open(fileobj=archived, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), 0o600, int(now)
            archive.addfile(member, io.BytesIO(data))
    return archived.getvalue()


def _of_folder(folder: Path) -> dict[str, bytes]:
    files = {}
    for name in sorted(FILES):
        path = str(folder / name)
        try:
            # Do not block if it is a FIFO.
            opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as e:
            if e.errno == errno.ELOOP:
                raise CaptureError(f"{path}: a symbolic link, which is not followed") from e
            raise CaptureError(f"{path}: cannot be read: {reason(e)}") from e
        with open(opened, "rb") as file:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                raise CaptureError(f"{path}: not a regular file")
            try:
                files[name] = file.read(MOST_BYTES + 1)
            except OSError as e:
                raise CaptureError(f"{path}: cannot be read: {reason(e)}") from e
        if sum(map(len, files.values())) > MOST_BYTES:
            raise CaptureError(f"{folder}: contains more than {MOST_BYTES >> 20} MiB: not a snapshot")
    return files


def _of_archive(path: str) -> dict[str, bytes]:
    try:
        with gzip.open(path) as unpacked:
            bounded = _Bounded(unpacked)
            files = _members(bounded)
            # Read to the checksum at the very end, so that a truncated archive is detected.
            while bounded.read(1 << 20):
                pass
            return files
    except (OSError, EOFError, zlib.error) as e:
        raise CaptureError(f"{path}: not a .tar.gz that can be read: {reason(e)}") from e
    except CaptureError as e:
        raise CaptureError(f"{path}: not a .tar.gz that can be read: {e}", e.status) from e


def _members(unpacked: _Bounded) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    for name, content in read_members(unpacked, _is_wanted, most_members=_MOST_MEMBERS):
        place = PurePosixPath(name)
        folders.add(str(place.parent))
        if len(folders) > 1:
            raise CaptureError(f"snapshots in {' and '.join(sorted(folders))}; an archive must contain one")
        if place.name in files:
            raise CaptureError(f"the archive contains {place.name} twice")
        files[place.name] = content
    return files


def _is_wanted(name: str) -> bool:
    place = PurePosixPath(name)
    if place.is_absolute() or ".." in place.parts:
        raise CaptureError(f"{name!r} leads out of the archive; it is not read")
    return place.name in FILES and len(place.parts) <= 2


class _Bounded(io.RawIOBase):
    """The decompressed contents of a file, up to :data:`MOST_BYTES`; CaptureError beyond.

    The bytes are counted, because the sizes in headers may be wrong, and headers may themselves be long.
    """

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self._left = MOST_BYTES

    def readable(self) -> bool:
        """Return True: the stream can always be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        data = self._file.read(min(self._left + 1, size) if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise CaptureError(f"it contains more than {MOST_BYTES >> 20} MiB: not a snapshot")
        return data
