"""Archives whose bytes depend on their contents alone."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping

__all__ = ["tar_gz"]


def tar_gz(members: Mapping[str, tuple[bytes, int]], *, when: int) -> bytes:
    """Return a ``.tar.gz`` of files with their modes, sorted by name, all of the time ``when``."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (data, mode) in sorted(members.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), mode, when
            archive.addfile(member, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=when)
