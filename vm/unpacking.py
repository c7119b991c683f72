"""Debian packages unpacked into a folder, without installing them."""

from __future__ import annotations

import shutil
from pathlib import Path

from vm.apt import Archive, run

__all__ = ["unpack"]


def unpack(archive: Archive, packages: tuple[str, ...], final: Path) -> Path:
    """Unpack packages into a temporary folder, which the caller moves to ``final``, and return it.

    It is not beside ``final``, where other programs may look meanwhile for what is there. Raises MachineError
    if a package cannot be fetched or unpacked.
    """
    partial = final.parent.with_name("unpacking") / f"{final.parent.name}-{final.name}"
    shutil.rmtree(partial, ignore_errors=True)
    final.parent.mkdir(parents=True, exist_ok=True)
    for deb in archive.download(packages, partial / "debs"):
        run(["dpkg-deb", "-x", str(deb), str(partial)], what=f"unpack {deb.name}")
    shutil.rmtree(partial / "debs")
    return partial
