"""Calls among the chains of a Program, and the fields and lists that rules test, for ``template``."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from translate.dataclass import dataclass, replace
from translate.ir import Field, FieldTest, Lookup, Program, Recent, Statement
from translate.passes.calls import called, callees_first

__all__ = ["CallGraph"]

_SHARED: Final = 64
"""A chain that does not test the key is called unchanged if more keys than this, or all keys, reach it."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """The chains of a Program by name: their callees and callers, and the fields that they test.

    ``tested`` includes the fields that the callees of a chain test. ``lists`` has each test of a list of
    ``-m recent``, with its chain, by the name of the list.
    """

    callees: dict[str, list[str]]
    callers: dict[str, list[str]]
    tested: dict[str, frozenset[Field]]
    lists: dict[str, list[tuple[str, Recent]]]

    @classmethod
    def of(cls, program: Program) -> CallGraph:
        """Return the call graph of a Program."""
        callees = {chain.name: called(chain) for chain in program.chains}
        callers: dict[str, list[str]] = {chain.name: [] for chain in program.chains}
        lists: dict[str, list[tuple[str, Recent]]] = {}
        for chain in program.chains:
            for name in callees[chain.name]:
                callers[name].append(chain.name)
            for statement in chain.statements:
                for test in statement.tests:
                    if isinstance(test, Recent):
                        lists.setdefault(test.name, []).append((chain.name, test))
        tested: dict[str, frozenset[Field]] = {}
        for chain in callees_first(program):
            fields = {f for statement in chain.statements for f in _tested_fields(statement)}
            tested[chain.name] = frozenset(fields.union(*(tested[name] for name in callees[chain.name])))
        return cls(callees, callers, tested, lists)

    def shared(self, fields: tuple[Field, ...], roots: Iterable[str]) -> set[str]:
        """Return the chains that all roots, or more than _SHARED, reach and that do not test these fields."""
        reached: dict[str, int] = {}
        count = 0
        for root in roots:
            count += 1
            visited = {root}
            todo = [root]
            while todo:
                for name in self.callees[todo.pop()]:
                    if name not in visited:
                        visited.add(name)
                        todo.append(name)
            for name in visited:
                reached[name] = reached.get(name, 0) + 1
        return {
            name
            for name, keys in reached.items()
            if (keys > _SHARED or keys == count) and not self.tested[name] & set(fields)
        }

    def with_callers(self, name: str) -> set[str]:
        """Return a chain and all chains that reach it."""
        reaching: set[str] = set()
        todo = [name]
        while todo:
            name = todo.pop()
            if name not in reaching:
                reaching.add(name)
                todo += self.callers[name]
        return reaching

    def profile(self, name: str) -> tuple[str, ...]:
        """Return the use of a list of ``-m recent`` by rules, without its name."""
        return tuple(sorted({repr(replace(test, name="")) for _, test in self.lists[name]}))

    def is_reached_only_by(self, name: str, root: str, inside: Collection[str]) -> bool:
        """Return whether packets reach the rules that name a list only by the single call of ``root``.

        ``inside`` are the chains below ``root``, which is one of them.
        """
        todo = [chain for chain, _ in self.lists[name]]
        visited: set[str] = set()
        while todo:
            chain = todo.pop()
            if chain in visited:
                continue
            visited.add(chain)
            if chain not in inside:
                return False
            if chain == root:
                if len(self.callers[chain]) != 1:
                    return False
            else:
                todo += self.callers[chain]
        return True


def _tested_fields(statement: Statement) -> list[Field]:
    tested = [test.field for test in statement.tests if isinstance(test, FieldTest)]
    return [*tested, *statement.fields] if isinstance(statement, Lookup) else tested
