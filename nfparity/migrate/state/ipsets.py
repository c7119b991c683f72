"""The ipsets of this network namespace, and the restore of those that were destroyed.

The kernel lets users destroy a set that no rule refers to. The translation has copies of the sets, so while
only the translation is loaded, no rule refers to a set. iptables-restore rejects the old rules if a set is
missing.
"""

from __future__ import annotations

from backends.testbed.command import run
from translate.errors import MachineError

__all__ = ["live_ipsets", "restore_missing"]


def live_ipsets() -> str:
    """Return the output of ``ipset save``. Raises MachineError."""
    return _ipset("", "save")


def restore_missing(saved: str) -> bool:
    """Create the missing sets of an output of ``ipset save``; return whether there are any.

    Existing sets are not changed. Raises MachineError.
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
