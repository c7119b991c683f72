"""The kernel modules of netfilter that the node has: built in, loaded, or ready to be loaded."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["read_available", "read_modules"]

_OF_NETFILTER = re.compile(
    r"(?:nf_|nft_|nfnetlink|xt_|x_tables|ipt_|ip6t_|ip_tables|ip6_tables|iptable_|ip6table_|ip_set|ip_vs|br_netf)"
)
_FILES = ("modules.order", "modules.builtin")


def read_modules(release: str, *, proc: Path, lib: Path) -> list[str] | None:
    """Return the names, sorted; None if the folder of this kernel's modules cannot be read.

    In a container it usually cannot. A kernel without modules has a file with those that are built in.
    """
    names = set()
    folder = lib / "modules" / release
    readable = False
    for file in (*(folder / name for name in _FILES), proc / "modules"):
        try:
            lines = file.read_text(errors="replace").splitlines()
        except OSError:
            continue
        readable = readable or file.parent == folder
        names |= {_name(line) for line in lines if line.strip()}
    return sorted(name for name in names if _OF_NETFILTER.match(name)) if readable else None


def read_available(release: str, *, proc: Path, lib: Path) -> frozenset[str] | None:
    """Return the modules that the kernel has without loading one: built in, or loaded.

    Returns None where no module can be loaded: a kernel without modules, or after ``modules_disabled``.
    """
    loaded = _lines(proc / "modules")
    if not (proc / "modules").exists() or _lines(proc / "sys/kernel/modules_disabled") == ["1"]:
        return None
    built_in = _lines(lib / "modules" / release / "modules.builtin")
    return frozenset(_name(line) for line in (*loaded, *built_in) if line.strip())


def _lines(file: Path) -> list[str]:
    """Return the lines of a file; none if it cannot be read."""
    try:
        return file.read_text(errors="replace").splitlines()
    except OSError:
        return []


def _name(line: str) -> str:
    """Return the module of a line of ``/proc/modules``, ``modules.order`` or ``modules.builtin``."""
    return Path(line.split()[0]).name.partition(".")[0].replace("-", "_")
