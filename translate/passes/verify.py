"""The invariants of every Program, checked by the tests after each pass.

If a pass breaks an invariant, the pass is wrong, never its input. So the tests call :func:`verify`, and
:func:`lower` does not.
"""

from __future__ import annotations

from collections.abc import Iterator

from translate.ir import (
    RANDOM_RANGE,
    TABLE_HOOKS,
    Accept,
    Choose,
    Drop,
    Goto,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    Name,
    Program,
    Reject,
    Return,
    Value,
    alternatives,
)

__all__ = ["VerifyError", "verify"]

VERDICTS = (Accept, Drop, Return, Jump, Goto, Reject)


class VerifyError(AssertionError):
    """A Program that no pass may produce."""


def verify(program: Program) -> Program:
    """Return ``program`` unchanged, or raise :class:`VerifyError` with all its faults.

    Checked: chain names are unique; jumps go to a chain without a hook in the same table; no chain reaches
    itself; base chains stand at a hook of their table with its priority and have a policy; a list of actions
    has at most one verdict, which is last; lookup keys fit their fields and are pairwise disjoint; weights
    are positive and sum to 2**31.
    """
    problems = list(_problems(program))
    if problems:
        raise VerifyError("\n".join(problems))
    return program


def _problems(program: Program) -> Iterator[str]:
    chains = {chain.name: chain for chain in program.chains}
    if len(chains) != len(program.chains):
        yield "two chains have the same name"
    for chain in program.chains:
        yield from (f"{chain.name}: {text}" for text in _chain_problems(chain, chains))
    yield from _loops(chains)


def _chain_problems(chain: LoweredChain, chains: dict[str, LoweredChain]) -> Iterator[str]:
    if (chain.hook is None) != (chain.policy is None) or (chain.hook is None) != (chain.priority is None):
        yield "a chain has all of hook, priority and policy, or none of them"
    if chain.hook is not None and TABLE_HOOKS[chain.table].get(chain.hook) != chain.priority:
        yield f"{chain.priority} is not the priority of {chain.hook} in table {chain.table}"
    for index, statement in enumerate(chain.statements):
        where = f"statement {index}"
        for each in alternatives(statement):
            if any(isinstance(action, VERDICTS) for action in each.actions[:-1]):
                yield f"{where}: an action follows a verdict"
            for action in each.actions:
                if isinstance(action, Jump | Goto):
                    target = chains.get(action.chain)
                    if target is None:
                        yield f"{where}: jump to {action.chain}, which does not exist"
                    elif target.table is not chain.table or target.hook is not None:
                        yield f"{where}: jump to {action.chain}, which is not a user chain of this table"
        if isinstance(statement, Lookup):
            yield from (f"{where}: {text}" for text in _lookup_problems(statement))
        if isinstance(statement, Choose):
            weights = [branch.weight for branch in statement.branches]
            if sum(weights) != RANDOM_RANGE or min(weights, default=0) <= 0:
                yield f"{where}: weights {weights} are not positive numbers that sum to 2**31"


def _lookup_problems(lookup: Lookup) -> Iterator[str]:
    if len(set(lookup.fields)) != len(lookup.fields) or not lookup.fields:
        yield "a lookup without fields, or with one field twice"
    for entry in lookup.entries:
        if len(entry.key) != len(lookup.fields):
            yield f"key {entry.key} does not have one value per field"
        for field, value in zip(lookup.fields, entry.key, strict=False):
            if isinstance(value, Name) is not field.is_name:
                yield f"{value} is not a value of {field.text}"
    points = [e.key for e in lookup.entries if all(_is_point(v) for v in e.key)]
    if len(points) != len(set(points)):
        yield "two entries have the same key"
    wide = [e.key for e in lookup.entries if not all(_is_point(v) for v in e.key)]
    for index, key in enumerate(wide):
        for other in (*points, *wide[index + 1 :]):
            if all(_overlap(a, b) for a, b in zip(key, other, strict=True)):
                yield f"keys {key} and {other} overlap"


def _is_point(value: Value) -> bool:
    return not value.wildcard if isinstance(value, Name) else value.is_point


def _overlap(a: Value, b: Value) -> bool:
    if isinstance(a, Interval) and isinstance(b, Interval):
        return a.low <= b.high and b.low <= a.high
    if isinstance(a, Name) and isinstance(b, Name):
        return a.matches(b.text) or b.matches(a.text)
    return False


def _loops(chains: dict[str, LoweredChain]) -> Iterator[str]:
    calls = {
        name: {
            action.chain
            for statement in chain.statements
            for each in alternatives(statement)
            for action in each.actions
            if isinstance(action, Jump | Goto) and action.chain in chains
        }
        for name, chain in chains.items()
    }
    while leaves := [name for name, called in calls.items() if not called & calls.keys()]:
        for name in leaves:
            del calls[name]
    if calls:
        yield f"chains reach themselves: {', '.join(sorted(calls))}"
