"""Chains in groups: chains that a program writes for each service, pod or zone are one group per class.

Two chains are of one class if their names have the same stem, and their rules the same shapes: tests of the
same fields, actions of the same kinds, jumps to chains of the same stem, in the same order, however often
each is repeated. So services that differ in their addresses and numbers of endpoints are of one class, and
a service with session affinity is of another. If a table still has too many groups, its chains are grouped
by stem alone, then by the beginning of their names, then all together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import groupby
from typing import Final

from harness.explain.stems import stem
from translate.dataclass import dataclass
from translate.ir import Chain, FieldTest, Goto, Policy, Rule, Ruleset, Table, Test

__all__ = ["Folded", "Group", "Link", "folded"]

_ALL_SHOWN: Final = 24
"""Up to this number of chains of a table, each is a group of its own."""
_MOST: Final = 60
"""The maximum number of groups of a table, except for groups of one built-in chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Chains of one class, in the order of the rules. Built-in chains are together only if they do nothing.

    ``inside`` is the number of rules that lead from one of them to another.
    """

    chains: tuple[Chain, ...]
    name: str
    inside: int = 0

    @property
    def fewest(self) -> int:
        """The number of rules of the chain with the fewest."""
        return min(len(chain.rules) for chain in self.chains)

    @property
    def most(self) -> int:
        """The number of rules of the chain with the most."""
        return max(len(chain.rules) for chain in self.chains)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The rules that lead from the chains of one group to those of another, both as numbers.

    ``line`` is that of the first such rule, 0 if unknown; ``goto`` is true if all of them are gotos.
    """

    caller: int
    callee: int
    rules: int
    line: int
    goto: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """One table: its groups in the order of their first chains, and the links between them."""

    table: str
    groups: tuple[Group, ...]
    links: tuple[Link, ...]

    @property
    def chains(self) -> int:
        """The number of chains."""
        return sum(len(group.chains) for group in self.groups)


def folded(ruleset: Ruleset, *, start: str | None = None) -> tuple[Folded, ...]:
    """Return the tables, with only ``start`` and the chains that it leads to if it is given.

    A table without a chain ``start`` is left out.
    """
    return tuple(_folded(table, chains) for table in ruleset.tables if (chains := _reached(table, start)))


def _reached(table: Table, start: str | None) -> tuple[Chain, ...]:
    if start is None:
        return table.chains
    reached: set[str] = set()
    pending = [start]
    while pending:
        name = pending.pop()
        chain = table.chain(name)
        if chain is None or name in reached:
            continue
        reached.add(name)
        pending += [rule.callee for rule in chain.rules if rule.callee is not None]
    return tuple(chain for chain in table.chains if chain.name in reached)


def _folded(table: Table, chains: tuple[Chain, ...]) -> Folded:
    stems = {chain.name: stem(chain.name) for chain in chains}
    ways: tuple[tuple[Callable[[Chain], Hashable], Callable[[Chain], str]], ...] = (
        (lambda chain: (stems[chain.name], _shape(chain, stems)), lambda chain: stems[chain.name]),
        (lambda chain: stems[chain.name], lambda chain: stems[chain.name]),
        (lambda chain: _beginning(chain.name), lambda chain: f"{_beginning(chain.name)}*"),
        (lambda chain: None, lambda chain: "*"),
    )
    if len(chains) <= _ALL_SHOWN:
        ways = ((lambda chain: chain.name, lambda chain: chain.name),)
    for key, name in ways:
        groups: dict[Hashable, list[Chain]] = {}
        for chain in chains:
            groups.setdefault(_built_in(chain) or key(chain), []).append(chain)
        named = [(_name(members, name), tuple(members)) for members in groups.values()]
        if sum(members[0].hook is None for members in groups.values()) <= _MOST:
            break
    return _linked(table, named)


def _built_in(chain: Chain) -> Hashable:
    """Return a built-in chain's class: one for all chains that do nothing, and one for each other chain."""
    if chain.hook is None:
        return None
    return ("built-in",) if not chain.rules and chain.policy is Policy.ACCEPT else ("built-in", chain.name)


def _name(members: list[Chain], name: Callable[[Chain], str]) -> str:
    if len(members) == 1 or members[0].hook is not None:
        return ", ".join(chain.name for chain in members)
    return name(members[0])


def _linked(table: Table, groups: list[tuple[str, tuple[Chain, ...]]]) -> Folded:
    number = {chain.name: n for n, (_, members) in enumerate(groups) for chain in members}
    links: dict[tuple[int, int], list[Rule]] = {}
    for caller, (_, members) in enumerate(groups):
        for chain in members:
            for rule in chain.rules:
                if rule.callee is not None and rule.callee in number:
                    links.setdefault((caller, number[rule.callee]), []).append(rule)
    return Folded(
        table=table.name.value,
        groups=tuple(
            Group(chains=members, name=name, inside=len(links.get((n, n), ())))
            for n, (name, members) in enumerate(groups)
        ),
        links=tuple(
            Link(
                caller=caller,
                callee=callee,
                rules=len(rules),
                line=rules[0].origin.line,
                goto=all(isinstance(rule.actions[0], Goto) for rule in rules),
            )
            for (caller, callee), rules in links.items()
            if caller != callee
        ),
    )


def _beginning(name: str) -> str:
    return name.partition("-")[0].partition("_")[0][:8]


def _shape(chain: Chain, stems: dict[str, str]) -> Hashable:
    """Return the shapes of the rules in their order, without immediate repetitions."""
    shapes = (_rule_shape(rule, stems) for rule in chain.rules)
    return tuple(dict.fromkeys(shape for shape, _ in groupby(shapes)))


def _rule_shape(rule: Rule, stems: dict[str, str]) -> Hashable:
    callee = rule.callee
    leads = "" if callee is None else stems.get(callee, callee)
    return (*_tested(rule.tests), *(type(action).__name__ for action in rule.actions), leads)


def _tested(tests: Iterable[Test]) -> tuple[Hashable, ...]:
    # The random test of a service's last endpoint is absent: endpoints are of one shape with and without.
    return tuple(sorted({_kind(test) for test in tests} - {"Random"}))


def _kind(test: Test) -> str:
    if isinstance(test, FieldTest):
        return f"{test.field.name}{' not' if test.negated else ''}"
    return type(test).__name__
