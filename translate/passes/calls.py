"""The call graph of the chains of a Program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from translate.ir import (
    Action,
    Apply,
    Choose,
    Goto,
    Jump,
    Lookup,
    LoweredChain,
    Program,
    Statement,
)

__all__ = ["CALLS", "action_lists", "called", "callee", "callees_first", "reachable"]

CALLS: Final = (Jump, Goto)
"""The actions that call another chain; they are always last in an action list."""


def action_lists(statement: Statement) -> tuple[tuple[Action, ...], ...]:
    """Return every action list that ``statement`` may run."""
    match statement:
        case Apply():
            return (statement.actions,)
        case Lookup():
            return tuple(entry.actions for entry in statement.entries)
        case Choose():
            return tuple(branch.actions for branch in statement.branches)


def callee(actions: tuple[Action, ...]) -> str | None:
    """Return the chain that an action list calls, or None."""
    if actions:
        last = actions[-1]
        if isinstance(last, CALLS):
            return last.chain
    return None


def called(chain: LoweredChain) -> list[str]:
    """Return the chains that ``chain`` jumps or goes to, in order, once per place."""
    names = []
    for statement in chain.statements:
        if isinstance(statement, Apply):
            name = callee(statement.actions)
            if name is not None:
                names.append(name)
        else:
            names += [name for actions in action_lists(statement) if (name := callee(actions)) is not None]
    return names


def callees_first(program: Program, starts: Iterable[LoweredChain] | None = None) -> tuple[LoweredChain, ...]:
    """Return chains so that each comes after every chain that it calls (no chain reaches itself).

    Without ``starts`` these are all chains; with it, those chains and the ones they reach.
    """
    chains = {chain.name: chain for chain in program.chains}
    done: dict[str, LoweredChain] = {}
    for start in program.chains if starts is None else starts:
        if start.name in done:
            continue
        # An explicit stack: x_tables allows jumps far deeper than Python's recursion limit.
        stack = [(start, iter(called(start)))]
        while stack:
            chain, rest = stack[-1]
            for target in rest:
                if target in done:
                    continue
                below = called(chains[target])
                if below:
                    stack.append((chains[target], iter(below)))
                    break
                done[target] = chains[target]
            else:
                done[chain.name] = chain
                stack.pop()
    return tuple(done.values())


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
