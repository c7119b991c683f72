"""Bare Debian roots, made with debootstrap and kept under build/roots."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["MIRROR", "bare_root"]

MIRROR = "http://deb.debian.org/debian"
_ROOT = Path(__file__).parents[3]


def bare_root(suite: str) -> Path:
    """Return the root of a suite, made if it is not there. Skips the test where it cannot be made."""
    root = _ROOT / "build/roots" / suite
    if not (root / "made").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.parent.mkdir(parents=True, exist_ok=True)
        words = ["debootstrap", "--variant=minbase", suite, str(root), MIRROR]
        made = subprocess.run(words, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"debootstrap cannot make a root: {made.stdout[-200:]}{made.stderr[-200:]}")
        (root / "made").touch()
    return root
