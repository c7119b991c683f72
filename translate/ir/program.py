"""The Program: rules lowered to a form from which nftables text and tc programs are emitted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from translate.dataclass import dataclass, field
from translate.ir.actions import Action
from translate.ir.family import Family
from translate.ir.fields import Field
from translate.ir.hooks import Hook, TableName
from translate.ir.matches import Test
from translate.ir.origin import NOWHERE, Origin
from translate.ir.ruleset import Policy
from translate.ir.sets import IpSet
from translate.ir.values import Value

__all__ = [
    "Apply",
    "Branch",
    "Choose",
    "Entry",
    "Lookup",
    "LoweredChain",
    "MergedList",
    "Program",
    "Statement",
    "alternatives",
    "qualified",
]


def qualified(table: TableName, chain: str) -> str:
    """Return the name of a chain in a Program; chains of two tables may have the same name."""
    return f"{table}/{chain}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """If all ``tests`` hold, do ``actions`` in order: effects, then at most one verdict."""

    tests: tuple[Test, ...]
    actions: tuple[Action, ...]
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A key of a lookup, with one value per field, and the actions for packets with that key."""

    key: tuple[Value, ...]
    actions: tuple[Action, ...]
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """If all ``tests`` hold, look up ``fields`` and do the actions of the entry, if there is one.

    Keys are pairwise disjoint, so at most one entry matches. If a field is absent, no entry matches.
    """

    fields: tuple[Field, ...]
    entries: tuple[Entry, ...]
    tests: tuple[Test, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One outcome of a random choice; ``weight`` is its share of 2**31."""

    weight: int
    actions: tuple[Action, ...]
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """If all ``tests`` hold, draw one branch by weight and do its actions.

    Weights sum to 2**31. ``equal`` is true for kube-proxy's equal split over n branches, whose weights differ
    only by rounding (by less than n parts in 2**31), so that an emitter may draw uniformly from n.
    After a branch without actions the next statement follows.
    """

    branches: tuple[Branch, ...]
    equal: bool = False
    tests: tuple[Test, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)


Statement = Apply | Lookup | Choose


def alternatives(statement: Statement) -> Sequence[Apply | Entry | Branch]:
    """Return the lists of actions of a statement, of which a packet gets at most one."""
    match statement:
        case Apply():
            return (statement,)
        case Lookup():
            return statement.entries
        case Choose():
            return statement.branches
        case _:
            assert_never(statement)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoweredChain:
    """A chain of the Program. ``name`` is qualified; base chains have hook, priority and policy."""

    name: str
    table: TableName
    statements: tuple[Statement, ...]
    hook: Hook | None = None
    priority: int | None = None
    policy: Policy | None = None
    origin: Origin = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class MergedList:
    """The list ``name`` of ``-m recent``, which lowering has made a part of the list ``into``.

    ``into`` has a separate part for each value of the fields in its :attr:`Recent.key`. ``key`` has their
    values for the part that replaces ``name``.
    """

    name: str
    into: str
    key: tuple[Value, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """All chains of one family, lowered. Jump and Goto name chains by their qualified name.

    ``sets`` holds every ipset that a test names. ``merged`` records the lists of ``-m recent`` that became
    parts of others; like an origin, it has no effect on packets.

    ``tracked``: a rule makes the kernel track connections. Otherwise no packet reaches table nat
    (``nf_nat_inet_fn``). A rule that no packet reaches counts, too, so passes that remove rules do not change
    ``tracked``. ``reassembled``: a rule with ``-m socket`` or TPROXY makes the kernel reassemble fragments
    before all tables, also if no packet reaches it (``nf_defrag_ipv4_enable``).
    """

    family: Family
    chains: tuple[LoweredChain, ...]
    source: str = "<none>"
    sets: tuple[IpSet, ...] = ()
    merged: tuple[MergedList, ...] = field(default=(), compare=False)
    tracked: bool = True
    reassembled: bool = False

    def chain(self, name: str) -> LoweredChain:
        """Return the chain with this qualified name; raises KeyError if there is none."""
        for chain in self.chains:
            if chain.name == name:
                return chain
        raise KeyError(name)
