"""A file system as the layer of an image: a tar archive whose bytes depend on the files alone."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Layer", "write_layer"]


@dataclass(frozen=True, slots=True)
class Layer:
    """A packed layer: its file, the digest of the file, and that of the archive before compression."""

    path: Path
    digest: str
    content_digest: str


def write_layer(root: Path, target: Path, *, when: int) -> Layer:
    """Pack a file system into a compressed archive.

    Files are sorted by name. Times after ``when`` become ``when``: those of the build. Device files are left
    out, since a container runtime makes its own, and so are names of users.
    """
    content = target.with_suffix(".tar")
    with tarfile.open(content, "w", format=tarfile.PAX_FORMAT) as archive:
        linked: dict[tuple[int, int], str] = {}
        for name in _names(root):
            member = _member(root, name, linked, when)
            if member.isreg():
                with (root / name).open("rb") as file:
                    archive.addfile(member, file)
            else:
                archive.addfile(member)
    with (
        content.open("rb") as plain,
        target.open("wb") as out,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=out, mtime=0) as packed,
    ):
        shutil.copyfileobj(plain, packed, 1 << 20)
    layer = Layer(target, _digest(target), _digest(content))
    content.unlink()
    return layer


def _names(root: Path) -> list[str]:
    names = []
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if not _is_device(path.lstat().st_mode):
                names.append(path.relative_to(root).as_posix())
    return sorted(names)


def _is_device(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)


def _member(root: Path, name: str, linked: dict[tuple[int, int], str], when: int) -> tarfile.TarInfo:
    status = (root / name).lstat()
    member = tarfile.TarInfo(name)
    member.mode, member.uid, member.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    member.mtime = min(int(status.st_mtime), when)
    if stat.S_ISLNK(status.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(root / name)
    elif stat.S_ISDIR(status.st_mode):
        # Times of folders are those of the last change within, which is the build's.
        member.type, member.mtime = tarfile.DIRTYPE, when
    elif status.st_nlink > 1 and (first := linked.setdefault((status.st_dev, status.st_ino), name)) != name:
        member.type, member.linkname = tarfile.LNKTYPE, first
    else:
        member.size = status.st_size
    return member


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
