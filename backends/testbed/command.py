"""Running of the tools that load rules, also if root's PATH does not have their directory."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from translate.errors import MachineError

__all__ = ["die_with_parent", "find_tool", "own_xtables_lock", "run"]

_PLACES: Final = ("/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin")


def find_tool(name: str) -> str | None:
    """Return the path of a program, also if ``PATH`` lacks the sbin directories; None if it is missing."""
    path = os.environ.get("PATH", "")
    return shutil.which(name, path=os.pathsep.join((path, *_PLACES)))


def run(
    command: tuple[str, ...],
    text: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    inherit: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end with ``text`` on its input, in the C locale.

    This process must have one thread; the kernel kills the tool when that thread ends (``PR_SET_PDEATHSIG``).
    With ``inherit`` the tool inherits every inheritable descriptor, so a process that waits for a lock of
    this process waits for the tool, too. Raises MachineError if the tool is missing; the caller checks the
    exit status.
    """
    path = find_tool(command[0])
    if path is None:
        raise MachineError(f"{command[0]} is not installed")
    full = {**os.environ, "LC_ALL": "C", **(environment or {})}
    setpriv = _setpriv()
    done = subprocess.run(
        (*setpriv, path, *command[1:]),
        input=text.encode(errors="surrogateescape"),
        capture_output=True,
        env=full,
        check=False,
        close_fds=not inherit,
        # With a preexec_fn, subprocess copies this process (fork) instead of sharing its memory (vfork).
        preexec_fn=None if setpriv else die_with_parent,
    )
    # Not decoded by subprocess, which would replace the carriage returns that a rule's comment may have.
    out, err = (data.decode(errors="surrogateescape") for data in (done.stdout, done.stderr))
    return subprocess.CompletedProcess((path, *command[1:]), done.returncode, out, err)


def _setpriv() -> tuple[str, ...]:
    """Return the beginning of a command that does the same as :func:`die_with_parent`; empty without setpriv.

    It takes 1 ms; a copy of a process of 40 MB takes 5 ms. BusyBox's setpriv does not have the option.
    """
    path = find_tool("setpriv")
    if path is None or os.path.basename(os.path.realpath(path)) != "setpriv":
        return ()
    return (path, "--pdeathsig", "KILL", "--")


@contextmanager
def own_xtables_lock() -> Iterator[dict[str, str]]:
    """Yield an environment in which iptables uses a private lock file.

    By default all network namespaces of the machine share one file (iptables(8), ``XTABLES_LOCKFILE``). The
    private file is in no directory, so it does not remain if this process is killed.
    """
    lock = os.memfd_create("xtables.lock")
    try:
        yield {"XTABLES_LOCKFILE": f"/proc/{os.getpid()}/fd/{lock}"}
    finally:
        os.close(lock)


_LIBC: Final = ctypes.CDLL(None)
_PR_SET_PDEATHSIG: Final = 1


def die_with_parent() -> None:
    """Make the kernel kill this process, a child that is about to execute a tool, with its parent thread."""
    # A tool that is still loading rules would keep the namespace alive after its owner was killed.
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
