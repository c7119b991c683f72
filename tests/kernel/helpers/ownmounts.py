"""A command prefix that gives a command its own mounts, also in a chroot, where ``unshare --mount`` fails."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_PROGRAM: Final = f"""
import os, sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[3])!r})
from tests.lab.mountnamespace import enter_mount_namespace
enter_mount_namespace()
os.execvp(sys.argv[1], sys.argv[1:])
"""

IN_OWN_MOUNTS: Final = (sys.executable, "-c", _PROGRAM)
