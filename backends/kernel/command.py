"""Running the tools that load rules, and finding them where root's PATH does not look."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

from translate.errors import MachineError

__all__ = ["find_tool", "run"]

_PLACES: Final = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin")


def find_tool(name: str) -> str | None:
    """Return the path of a program, also when ``PATH`` lacks the sbin folders; None if absent."""
    path = os.environ.get("PATH", "")
    return shutil.which(name, path=os.pathsep.join((path, *_PLACES)))


def run(
    command: tuple[str, ...], text: str = "", *, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end with ``text`` on its input, in the C locale.

    Raises MachineError when there is no such tool; its exit status is for the caller to judge.
    """
    path = find_tool(command[0])
    if path is None:
        raise MachineError(f"{command[0]} is not installed")
    full = {**os.environ, "LC_ALL": "C", **(environment or {})}
    return subprocess.run(
        (path, *command[1:]), input=text, capture_output=True, text=True, env=full, check=False
    )
