"""The hand-written half of the tc program, as C text that ``translate.bpf.emit`` puts together.

The order of its parts: ``base``, the structures of :mod:`translate.bpf.layout.tables`, ``ipv4/address``,
``types``, the maps of ``tables``, ``counters``, ``ah``, ``ipv4/header``, ``sctp``, ``tcpoptions``, ``clock``,
``packet``, ``tcpstates``, ``tcpwindow``, ``tcp``, ``entries``, ``icmperrors``, ``conntrack``, ``nat``,
``route``, ``ipv4/route``, the parts that only some rules need (``recent``, ``ipset``, ``filledset``, ``nth``,
``limit``, ``words``, ``quota``, ``hashlimit``, ``hashwindow``, ``cluster``, ``npt``, ``connlimit``,
``cgroup``, ``pathmtu``, ``hmark``, ``options``, ``bytecode``, ``waysback``), then the generated chains,
then ``slot``, ``binding``, ``forward``, ``hooks``, ``ipv4/answer`` and ``reject``. ``ipv6/`` has the same
parts for IPv6, which define the same names; everything else serves both families, except ``waysback``, which
only IPv6 needs.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.resources import files
from typing import Final

from translate.bpf.layout.counters import counter_numbers
from translate.bpf.layout.programs import program_numbers
from translate.bpf.layout.tables import RuntimePart, count_list, runtime_maps, runtime_types
from translate.ir import Family

__all__ = ["after_chains", "before_chains", "runtime_text"]

_FOLDERS: Final = {Family.IP: "ipv4", Family.IP6: "ipv6"}


def before_chains(
    family: Family,
    parts: Collection[RuntimePart],
    *,
    counters: int = 0,
    buckets: int = 0,
    quotas: int = 0,
    counted: int = 0,
    cgroups: int = 0,
) -> str:
    """Return the runtime that the chains of a family use, with these optional parts."""
    own = _FOLDERS[family]
    tracking = ("tcpstates", "tcpwindow", "tcp", "entries", "icmperrors", "conntrack")
    common = ("sctp", "tcpoptions", "clock", "packet", *tracking, "nat", "route")
    optional = (part.value for part in RuntimePart if part in parts)
    sizes = {
        "counters": counters,
        "buckets": buckets,
        "quotas": quotas,
        "counted": counted,
        "cgroups": cgroups,
    }
    maps = (table.declaration() for table in runtime_maps(family, parts, **sizes))
    return "\n".join(
        (
            runtime_text("base"),
            runtime_types(family).declarations(parts),
            runtime_text(f"{own}/address"),
            runtime_text("types"),
            *([f"#define COUNTED {counted}", count_list(family, counted).declaration()] if counted else []),
            "".join(maps),
            program_numbers(),
            counter_numbers(),
            *map(runtime_text, ("counters", "ah", f"{own}/header", *common, f"{own}/route", *optional)),
        )
    )


def after_chains(family: Family) -> str:
    """Return the runtime that follows the chains and calls them."""
    parts = ("slot", "binding", "forward", "hooks", f"{_FOLDERS[family]}/answer", "reject")
    return "\n".join(map(runtime_text, parts))


def runtime_text(name: str) -> str:
    """Return one part of the runtime."""
    return files(__package__).joinpath(f"{name}.h").read_text("ascii")
