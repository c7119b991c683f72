"""The names and numbers that the statements of a Program refer to."""

from __future__ import annotations

from collections.abc import Mapping

from translate.bpf.chains.code import Needs
from translate.bpf.chains.ipsets import SetMap
from translate.dataclass import dataclass, field, replace
from translate.ir import Family, HashLimit
from translate.passes.recents import RecentList

__all__ = ["Context"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The names that a statement can refer to, and the next free numbers for its declarations.

    ``functions`` has the C function of each chain. ``lists`` has the lists of ``-m recent`` with their
    numbers. ``buckets``, ``quotas`` and ``counts`` have the numbers of the buckets of ``-m limit``, of
    the quotas and of the rules with ``-m connlimit``, and ``sets`` the ipsets. ``tables`` has the tables
    of ``-m hashlimit``, with their numbers and first tests. ``cgroups`` has the numbers of the paths
    of ``-m cgroup``. ``takes`` is true in a chain that packets reach from INPUT. ``lookups`` is the
    number of the next lookup's map, and ``counters`` that of the next counter of ``statistic --mode
    nth``.
    """

    family: Family
    functions: Mapping[str, str]
    lists: Mapping[str, tuple[int, RecentList]]
    buckets: Mapping[str, int]
    sets: Mapping[str, SetMap]
    quotas: Mapping[str, int] = field(default_factory=dict)
    tables: Mapping[str, tuple[int, HashLimit]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    cgroups: Mapping[str, int] = field(default_factory=dict)
    takes: bool = False
    lookups: int = 0
    counters: int = 0

    def after(self, needs: Needs) -> Context:
        """Return the context of the next statement, after the maps and counters of ``needs`` are declared."""
        if not needs.maps and not needs.counters:
            return self
        lookups, counters = self.lookups + len(needs.maps), self.counters + needs.counters
        return replace(self, lookups=lookups, counters=counters)
