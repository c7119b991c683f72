"""Debian's kubectl, unpacked under the build folder and not installed; it needs no libraries."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

from vm.apt import Archive
from vm.unpacking import unpack

__all__ = ["ensure_kubectl"]

_PACKAGE, _OLD_PACKAGE = "kubectl", "kubernetes-client"
"""The package of the program; in Debian 12 and before it is in the old one."""


def ensure_kubectl(release: str, *, build: Path) -> Path:
    """Return the kubectl of a release, fetching it the first time. MachineError if it cannot be fetched."""
    root = build / "kubectl" / release
    program = root / "usr/bin/kubectl"
    root.parent.mkdir(parents=True, exist_ok=True)
    with (root.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            archive = Archive(build / f"apt-kubectl-{release}", release)
            archive.update()
            package = _PACKAGE if _PACKAGE in archive.names(_PACKAGE) else _OLD_PACKAGE
            partial = unpack(archive, (package,), root)
            shutil.rmtree(root, ignore_errors=True)
            partial.rename(root)
    return program
