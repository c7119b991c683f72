"""Debian's kubectl, unpacked under the build folder and not installed; it needs no libraries."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path
from typing import Final

from vm.apt import Archive
from vm.unpacking import unpack

__all__ = ["ensure_kubectl"]

_PACKAGE: Final = "kubernetes-client"


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
            partial = unpack(archive, (_PACKAGE,), root)
            shutil.rmtree(root, ignore_errors=True)
            partial.rename(root)
    return program
