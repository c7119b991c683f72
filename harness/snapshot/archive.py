"""The files of a snapshot, from a folder or a ``.tar.gz``, by name.

An archive is read in memory and never unpacked: no name in it can lead anywhere. It may come from
a machine that is not trusted, so its size is bounded while it is being decompressed.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from harness.files import read_bytes
from translate.errors import InputError

__all__ = ["FILES", "MOST_BYTES", "RULE_FILES", "is_snapshot", "read_files"]

RULE_FILES: Final = (
    *("iptables-save", "iptables-legacy-save", "iptables-nft-save"),
    *("ip6tables-save", "ip6tables-legacy-save", "ip6tables-nft-save"),
)
"""The files with rules: a family's in one file, or in one for each stack when both hold some."""

FILES: Final = frozenset(
    {
        *RULE_FILES,
        *("ipset-save", "nft.json", "addr.json", "route.json", "route6.json", "rule.json", "rule6.json"),
        *("sysctl.json", "meta.json", "objects.json"),
    }
)
"""Every file that a snapshot can have; others in the folder are not looked at."""

MOST_BYTES: Final = 1 << 30
"""How much an archive may hold, all in all. The rules of 10,000 services are some 30 MB."""

_MOST_MEMBERS: Final = 1000
_GZIP: Final = b"\x1f\x8b"


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


def read_files(path: str) -> Mapping[str, bytes]:
    """Return the files of a snapshot by name. InputError when it holds none, or cannot be read."""
    found = _of_folder(Path(path)) if Path(path).is_dir() else _of_archive(path)
    if not found:
        raise InputError(f"{path}: no snapshot: none of {', '.join(sorted(FILES))} is in it")
    return found


def _of_folder(folder: Path) -> dict[str, bytes]:
    return {name: read_bytes(folder / name) for name in sorted(FILES) if (folder / name).is_file()}


def _of_archive(path: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    folders: set[str] = set()
    try:
        with (
            gzip.open(path) as unpacked,
            _Bounded(unpacked, path) as bounded,
            tarfile.open(fileobj=bounded, mode="r|") as archive,
        ):
            for number, member in enumerate(archive, 1):
                if number > _MOST_MEMBERS:
                    raise InputError(f"{path}: more than {_MOST_MEMBERS} files: this is no snapshot")
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts:
                    raise InputError(f"{path}: {member.name!r} leads out of the archive; it is not read")
                if place.name not in FILES or len(place.parts) > 2 or not member.isreg():
                    continue
                folders.add(str(place.parent))
                if len(folders) > 1:
                    places = " and ".join(sorted(folders))
                    raise InputError(f"{path}: snapshots in {places}; an archive holds one")
                if place.name in found:
                    raise InputError(f"{path}: {place.name} is in it twice")
                content = archive.extractfile(member)
                assert content is not None
                found[place.name] = content.read()
            # The check sum stands at the very end: without it, an archive that was cut could pass.
            while bounded.read(1 << 20):
                pass
    except (OSError, EOFError, zlib.error, tarfile.TarError) as e:
        reason = e.strerror.lower() if isinstance(e, OSError) and e.strerror else str(e)
        raise InputError(f"{path}: not a .tar.gz that can be read: {reason}") from e
    return found


class _Bounded(io.RawIOBase):
    """Hands on what a file holds, up to :data:`MOST_BYTES`; InputError beyond.

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
            raise InputError(f"{self._path}: holds more than {MOST_BYTES >> 20} MiB: this is no snapshot")
        return data
