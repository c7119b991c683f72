"""The paths to each rule: the calls that lead there from a hook, and the tests that hold on the path.

These are the tests of the calling rules and the negated tests of earlier rules that end the walk, if such a
rule has a single plain test. Paths whose tests contradict each other are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.corpus.generate.candidates.constraints import Constraints, constraints_of, opposite
from harness.corpus.generate.selection import Selection
from harness.corpus.reachability import WalkEnds
from translate.dataclass import dataclass, replace
from translate.ir import (
    TABLE_HOOKS,
    AnyOf,
    Chain,
    ConnectionState,
    Family,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Rule,
    SetTest,
    Table,
    TableName,
    Test,
)

__all__ = ["RulePath", "paths_to_rules"]

_MOST_PATHS = 12
_DEEPEST = 24
_MOST_TESTS = 64  # after a long list of rules, trying packets is cheaper than reasoning


@dataclass(frozen=True, slots=True)
class RulePath:
    """The tests that a packet at ``hook`` must pass to reach a rule."""

    table: TableName
    hook: Hook
    tests: tuple[Test, ...]


def paths_to_rules(
    table: Table, family: Family, chosen: Selection | None = None
) -> dict[tuple[Hook, str, int], list[RulePath]]:
    """Return the paths to every rule of the table, at most a dozen for each rule and hook.

    With ``chosen``, all other rules count as if they were not there.
    """
    paths: dict[tuple[Hook, str, int], list[RulePath]] = {}
    start: tuple[Test, ...] = ()
    if table.name is TableName.NAT:
        # nf_nat_inet_fn: only packets that begin a connection walk the chains
        states = (ConnectionState.NEW, ConnectionState.RELATED)
        values = tuple(Interval.point(s) for s in states)
        start = (FieldTest(field=Field.CT_STATE, values=values),)
    ends = WalkEnds(table)
    for hook in TABLE_HOOKS[table.name]:
        base = table.chain(hook.value)
        if base is not None:
            _walk(table, ends, base, RulePath(table.name, hook, start), family, paths, chosen, depth=0)
    return paths


def _walk(
    table: Table,
    ends: WalkEnds,
    chain: Chain,
    path: RulePath,
    family: Family,
    paths: dict[tuple[Hook, str, int], list[RulePath]],
    chosen: Selection | None,
    *,
    depth: int,
) -> None:
    indexes = range(len(chain.rules)) if chosen is None else chosen.of(table.name, chain.name)
    for number, index in enumerate(indexes):
        rule = chain.rules[index]
        known = paths.setdefault((path.hook, chain.name, index), [])
        if number == 0 and (len(known) >= _MOST_PATHS or path in known):
            return
        if len(known) < _MOST_PATHS:
            known.append(path)
        action = rule.actions[0] if rule.actions else None
        if isinstance(action, Jump | Goto) and depth < _DEEPEST:
            callee = table.chain(action.chain)
            taken = replace(path, tests=_joined(path.tests, rule.tests))
            if callee is not None and _possible(taken.tests, family):
                _walk(table, ends, callee, taken, family, paths, chosen, depth=depth + 1)
        if ends.at(rule):
            past = _past(path, rule, family)
            if past is None:
                return
            path = past


def _joined(tests: tuple[Test, ...], more: tuple[Test, ...]) -> tuple[Test, ...]:
    return tuple(dict.fromkeys((*tests, *more)))


def _possible(tests: tuple[Test, ...], family: Family) -> bool:
    return next(_constraints(tests, family), None) is not None


def _constraints(tests: tuple[Test, ...], family: Family) -> Iterator[Constraints]:
    # A mark may change between two rules, so it proves nothing.
    return constraints_of((t for t in tests if not _about_mark(t)), family)


def _about_mark(test: Test) -> bool:
    return isinstance(test, FieldTest) and test.field in (Field.MARK, Field.CT_MARK)


def _past(path: RulePath, rule: Rule, family: Family) -> RulePath | None:
    """Return the path past a rule that ends the walk of matching packets; None if it matches all packets."""
    constraints = next(_constraints(path.tests, family), None)
    if constraints is None:
        return None
    open_tests = [t for t in rule.tests if not (isinstance(t, FieldTest) and constraints.implies(t))]
    if not open_tests:
        return None
    short = len(path.tests) < _MOST_TESTS
    if short and len(open_tests) == 1 and isinstance(open_tests[0], FieldTest | AnyOf | SetTest):
        return replace(path, tests=_joined(path.tests, (opposite(open_tests[0]),)))
    return path
