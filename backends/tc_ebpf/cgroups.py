"""The cgroups that rules name by their paths: their numbers in the kernel, found when a program is loaded."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from translate.errors import MachineError

__all__ = ["cgroup_entries"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ROOT: Final = 1
"""The number of the first cgroup, whose directory a process in another namespace of cgroups does not see."""


def cgroup_entries(paths: Iterable[str]) -> list[tuple[bytes, bytes]]:
    """Return an entry of the map ``cgroups`` for each path: the number of the cgroup, in the order of paths.

    The number is that of the directory (``kernfs_node_id``). Raises MachineError for a cgroup that does not
    exist, as iptables does (``cgroup_get_from_path``), and if no hierarchy of version 2 is mounted.
    """
    root = _hierarchy()
    entries = []
    for number, path in enumerate(paths):
        try:
            inode = (root / path).stat().st_ino
        except OSError as e:
            raise MachineError(f"there is no cgroup {path} in {root}: {e.strerror}") from e
        entries.append((struct.pack("=I", number), struct.pack("=Q", inode)))
    return entries


def _hierarchy() -> Path:
    """Return where the whole hierarchy of version 2 is mounted."""
    for line in _MOUNTS.read_text().splitlines():
        place, _, kind = line.partition(" - ")
        if kind.startswith("cgroup2 "):
            root = Path(place.split()[4].encode().decode("unicode_escape"))
            with contextlib.suppress(OSError):  # another file system may be mounted over it
                if root.stat().st_ino == _ROOT:
                    return root
    raise MachineError("rules have -m cgroup --path, but the hierarchy of cgroup2 is not mounted as a whole")
