"""The five hooks, the five tables, and the order in which the kernel runs them."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = ["CONNTRACK_PRIORITY", "TABLE_HOOKS", "Hook", "TableName", "tables_at"]


class Hook(StrEnum):
    """A netfilter hook, spelled as the built-in chain that iptables puts there."""

    PREROUTING = "PREROUTING"
    INPUT = "INPUT"
    FORWARD = "FORWARD"
    OUTPUT = "OUTPUT"
    POSTROUTING = "POSTROUTING"


class TableName(StrEnum):
    """An x_tables table."""

    RAW = "raw"
    MANGLE = "mangle"
    NAT = "nat"
    FILTER = "filter"
    SECURITY = "security"


TABLE_HOOKS: Final = MappingProxyType(
    {
        TableName.RAW: MappingProxyType({Hook.PREROUTING: -300, Hook.OUTPUT: -300}),
        TableName.MANGLE: MappingProxyType(
            {
                Hook.PREROUTING: -150,
                Hook.INPUT: -150,
                Hook.FORWARD: -150,
                Hook.OUTPUT: -150,
                Hook.POSTROUTING: -150,
            }
        ),
        TableName.NAT: MappingProxyType(
            {
                Hook.PREROUTING: -100,
                Hook.INPUT: 100,
                Hook.OUTPUT: -100,
                Hook.POSTROUTING: 100,
            }
        ),
        TableName.FILTER: MappingProxyType({Hook.INPUT: 0, Hook.FORWARD: 0, Hook.OUTPUT: 0}),
        TableName.SECURITY: MappingProxyType({Hook.INPUT: 50, Hook.FORWARD: 50, Hook.OUTPUT: 50}),
    }
)
"""The built-in chains of each table and their hook priorities (``enum nf_ip_hook_priorities``)."""

CONNTRACK_PRIORITY: Final = -200
"""The priority of connection tracking (``NF_IP_PRI_CONNTRACK``, at PREROUTING and OUTPUT)."""


def tables_at(hook: Hook) -> tuple[tuple[TableName, int], ...]:
    """Return the tables with a built-in chain at ``hook`` and its priority, in the kernel's order."""
    tables = [(t, hooks[hook]) for t, hooks in TABLE_HOOKS.items() if hook in hooks]
    return tuple(sorted(tables, key=lambda pair: pair[1]))
