"""The time stamp of everything that is built: that of the commit, so that a commit gives the same bytes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

__all__ = ["source_time"]

_ROOT: Final = Path(__file__).parents[1]


def source_time() -> int:
    """Return SOURCE_DATE_EPOCH, or else the time of the commit, or else that of pyproject.toml."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is not None:
        return int(epoch)
    if not (_ROOT / ".git").exists():
        return int((_ROOT / "pyproject.toml").stat().st_mtime)
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return int(done.stdout)
