"""The ipsets in this network namespace, and those that rules need which somebody has destroyed.

A set that no rule asks may be destroyed. While the translation, which has a copy, is in force, none of the
old rules asks one; iptables does not take them back while it is not there.
"""

from __future__ import annotations

from backends.testbed.command import run
from translate.errors import MachineError

__all__ = ["live_ipsets", "restore_missing"]


def live_ipsets() -> str:
    """Return what ``ipset save`` prints. MachineError."""
    return _ipset("", "save")


def restore_missing(saved: str) -> bool:
    """Make those sets of what ``ipset save`` has printed that are not there; return whether there are any.

    Sets that are there stay as they are. MachineError.
    """
    there = set(_ipset("", "list", "-n").split("\n"))
    lines = [line for line in saved.split("\n") if len(line.split()) > 1 and line.split()[1] not in there]
    if not lines:
        return False
    _ipset("".join(f"{line}\n" for line in lines), "restore")
    return True


def _ipset(text: str, *words: str) -> str:
    done = run(("ipset", *words), text, inherit=True)
    if done.returncode:
        raise MachineError(f"ipset {words[0]}: {done.stderr.strip()}")
    return done.stdout
