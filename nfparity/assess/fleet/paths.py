"""Paths of the snapshots that a command line names: single snapshots, and folders of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from harness.files.errors import reason
from nfparity.capture.files import FILES
from translate.errors import InputError

__all__ = ["is_collection", "labels", "snapshot_paths"]

_ARCHIVES: Final = (".tar.gz", ".tgz")


def is_collection(path: str) -> bool:
    """Return whether ``path`` is a folder but not a snapshot; it may then contain snapshots."""
    return os.path.isdir(path) and not _is_snapshot_folder(Path(path))


def snapshot_paths(words: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of all snapshots, each once, those of a folder sorted by name.

    In a folder of snapshots, only ``.tar.gz`` files and folders with files of a snapshot count; deeper
    folders are not searched. The contents are not checked here.
    Raises InputError for a folder without any snapshot, or one that cannot be read.
    """
    by_place: dict[str, str] = {}
    for word in words:
        for path in _inside(word) if is_collection(word) else (word,):
            by_place.setdefault(os.path.realpath(path), path)
    return tuple(by_place.values())


def _inside(folder: str) -> Iterator[str]:
    try:
        inside = sorted(Path(folder).iterdir())
        paths = [entry for entry in inside if entry.name.endswith(_ARCHIVES) or _is_snapshot_folder(entry)]
        led = [p for p in paths if p.is_symlink() and p.resolve().parent != Path(folder).resolve()]
    except (OSError, RuntimeError) as e:
        raise InputError(f"{folder}: cannot be read: {reason(e)}") from e
    if led:
        raise InputError(f"{led[0]}: a symbolic link that leads out of the folder; name its target instead")
    if not paths:
        raise InputError(f"{folder}: no snapshot, and none inside: no .tar.gz, no folder with iptables-save")
    yield from map(str, paths)


def _is_snapshot_folder(path: Path) -> bool:
    return path.is_dir() and any((path / name).is_file() for name in FILES)


def labels(paths: Sequence[str]) -> tuple[str, ...]:
    """Return short names of the snapshots: file names, or paths if file names are not unique."""
    short = tuple(_short(path) for path in paths)
    return short if len(set(short)) == len(short) else tuple(paths)


def _short(path: str) -> str:
    name = os.path.basename(os.path.normpath(path))
    return next((name.removesuffix(end) for end in _ARCHIVES if name.endswith(end)), name)
