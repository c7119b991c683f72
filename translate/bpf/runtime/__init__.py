"""The hand-written half of the tc program, as C text that ``translate.bpf.emit`` puts together.

Read in this order: ``base``, ``ipv4/address``, ``types``, ``counters``, ``ipv4/header``, ``sctp``,
``packet``, ``tcp``, ``conntrack``, ``nat``, ``route``, ``ipv4/route``, the parts that only some rules
need (``recent``, ``ipset``, ``nth``), then the generated chains, then ``slot``, ``binding``,
``forward``, ``hooks``, ``ipv4/answer`` and ``reject``. For IPv6, ``ipv6/`` has the same parts with the
same names in them; everything else serves both families.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from translate.ir import Family

__all__ = ["after_chains", "before_chains", "runtime_text"]

_FOLDERS: Final = {Family.IP: "ipv4", Family.IP6: "ipv6"}


def before_chains(family: Family) -> tuple[str, ...]:
    """Return the names of the parts that the chains of a family use."""
    own = _FOLDERS[family]
    return (
        "base",
        f"{own}/address",
        "types",
        "counters",
        f"{own}/header",
        "sctp",
        "packet",
        "tcp",
        "conntrack",
        "nat",
        "route",
        f"{own}/route",
    )


def after_chains(family: Family) -> tuple[str, ...]:
    """Return the names of the parts that use the chains."""
    return ("slot", "binding", "forward", "hooks", f"{_FOLDERS[family]}/answer", "reject")


def runtime_text(name: str) -> str:
    """Return one part of the runtime."""
    return files(__package__).joinpath(f"{name}.h").read_text("ascii")
