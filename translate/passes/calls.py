"""The call graph of the chains of a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from translate.ir import (
    Action,
    Apply,
    Goto,
    Hook,
    Jump,
    LoweredChain,
    Program,
    alternatives,
)

__all__ = ["CALLS", "called", "callee", "callees_first", "hooks_of_chains", "reachable"]

CALLS: Final = (Jump, Goto)
"""The actions that call another chain; they are always last in a list of actions."""


def callee(actions: tuple[Action, ...]) -> str | None:
    """Return the chain that a list of actions calls, or None."""
    if actions:
        last = actions[-1]
        if isinstance(last, CALLS):
            return last.chain
    return None


def called(chain: LoweredChain) -> list[str]:
    """Return the chains that ``chain`` jumps or goes to, in order, once for each call."""
    names = []
    for statement in chain.statements:
        if isinstance(statement, Apply):  # nearly all statements, before lookups are made
            name = callee(statement.actions)
            if name is not None:
                names.append(name)
            continue
        names += [name for each in alternatives(statement) if (name := callee(each.actions)) is not None]
    return names


def callees_first(
    program: Program,
    starts: Iterable[LoweredChain] | None = None,
    *,
    calls: Callable[[LoweredChain], Iterable[str]] = called,
) -> tuple[LoweredChain, ...]:
    """Return chains so that each comes after every chain that it calls (no chain reaches itself).

    Without ``starts`` the result has all chains; otherwise ``starts`` and the chains that they reach.
    ``calls`` returns the callees of a chain in the order in which they are visited.
    """
    chains = {chain.name: chain for chain in program.chains}
    ordered: dict[str, LoweredChain] = {}
    for start in program.chains if starts is None else starts:
        if start.name in ordered:
            continue
        # An explicit stack: x_tables allows jumps far deeper than Python's recursion limit.
        stack = [(start, iter(calls(start)))]
        while stack:
            chain, rest = stack[-1]
            for target in rest:
                if target in ordered:
                    continue
                stack.append((chains[target], iter(calls(chains[target]))))
                break
            else:
                ordered[chain.name] = chain
                stack.pop()
    return tuple(ordered.values())


def reachable(program: Program) -> frozenset[str]:
    """Return the names of base chains and of all chains that they reach."""
    chains = {chain.name: chain for chain in program.chains}
    todo = [chain for chain in program.chains if chain.hook is not None]
    names = {chain.name for chain in todo}
    while todo:
        for target in called(todo.pop()):
            if target not in names:
                names.add(target)
                todo.append(chains[target])
    return frozenset(names)


def hooks_of_chains(program: Program) -> dict[str, frozenset[Hook]]:
    """Return the hooks from which packets come to each chain."""
    hooks: dict[str, set[Hook]] = {chain.name: set() for chain in program.chains}
    for hook in Hook:
        starts = [chain for chain in program.chains if chain.hook is hook]
        for chain in callees_first(program, starts):
            hooks[chain.name].add(hook)
    return {name: frozenset(several) for name, several in hooks.items()}
