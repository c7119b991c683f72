"""Running the tools that change the kernel's tables.

A tool must be gone before somebody else looks at what it has done. When this process is killed, the tool is
too (``PR_SET_PDEATHSIG``), but a moment later; so it inherits the locks that are held here, which whoever
comes next waits for.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from backends.kernel.command import die_with_parent, find_tool
from translate.errors import MachineError

__all__ = ["run_tool"]


def run_tool(
    command: tuple[str, ...], text: str = "", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end in the C locale, with every descriptor that is inheritable here.

    Raises MachineError when there is no such tool; its exit status is for the caller to judge.
    """
    path = find_tool(command[0])
    if path is None:
        raise MachineError(f"{command[0]} is not installed")
    return subprocess.run(
        (path, *command[1:]),
        input=text,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        env={**os.environ, "LC_ALL": "C", **(environment or {})},
        check=False,
        close_fds=False,
        preexec_fn=die_with_parent,
    )
