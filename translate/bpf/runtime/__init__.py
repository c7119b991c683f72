"""The hand-written half of the tc program, as C text that ``translate.bpf.emit`` puts together.

Read in this order: ``types``, ``packet``, ``tcp``, ``conntrack``, ``nat``, ``route``, where the rules
have lists ``recent``, then the generated chains, then ``hooks`` and ``reject``.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

__all__ = ["AFTER_CHAINS", "BEFORE_CHAINS", "RECENT", "runtime_text"]

BEFORE_CHAINS: Final = ("types", "packet", "tcp", "conntrack", "nat", "route")
RECENT: Final = "recent"
AFTER_CHAINS: Final = ("hooks", "reject")


def runtime_text(name: str) -> str:
    """Return one part of the runtime."""
    return files(__package__).joinpath(f"{name}.h").read_text("ascii")
