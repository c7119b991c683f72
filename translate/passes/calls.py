"""Who calls whom among the chains of a Program."""

from __future__ import annotations

from collections.abc import Iterator

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

__all__ = ["action_lists", "called", "callees_first", "reachable"]


def action_lists(statement: Statement) -> tuple[tuple[Action, ...], ...]:
    """Return every action list that ``statement`` may run."""
    match statement:
        case Apply():
            return (statement.actions,)
        case Lookup():
            return tuple(entry.actions for entry in statement.entries)
        case Choose():
            return tuple(branch.actions for branch in statement.branches)


def called(chain: LoweredChain) -> Iterator[str]:
    """Yield the chains that ``chain`` jumps or goes to, in order, once per place."""
    for statement in chain.statements:
        for actions in action_lists(statement):
            for action in actions:
                if isinstance(action, Jump | Goto):
                    yield action.chain


def callees_first(program: Program) -> tuple[LoweredChain, ...]:
    """Return all chains so that each comes after every chain that it calls (no chain reaches itself)."""
    chains = {chain.name: chain for chain in program.chains}
    done: dict[str, LoweredChain] = {}
    for start in program.chains:
        # An explicit stack: x_tables allows jumps far deeper than Python's recursion limit.
        stack = [(start, called(start))]
        while stack:
            chain, rest = stack[-1]
            if chain.name in done:
                stack.pop()
                continue
            target = next((name for name in rest if name not in done), None)
            if target is None:
                done[chain.name] = chain
                stack.pop()
            else:
                stack.append((chains[target], called(chains[target])))
    return tuple(done.values())


def reachable(program: Program) -> frozenset[str]:
    """Return the names of base chains and of all chains that they reach."""
    chains = {chain.name: chain for chain in program.chains}
    todo = [chain for chain in program.chains if chain.hook is not None]
    seen = {chain.name for chain in todo}
    while todo:
        for target in called(todo.pop()):
            if target not in seen:
                seen.add(target)
                todo.append(chains[target])
    return frozenset(seen)
