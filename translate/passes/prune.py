"""``prune``: what no packet can reach or notice goes away.

*Before*: any verified Program.

*After*: no statement does nothing; none stands behind one that surely leaves the chain; no chain is
unreachable (``KUBE-KUBELET-CANARY``) or empty, except base chains that decide something.

*Why the meaning is preserved*: a jump to an empty chain comes straight back, a goto to one is a
return, and a return at the end of a chain says what its end says. A base chain without statements
lets everything pass when its policy is ACCEPT; with policy DROP it stays. Base chains of nat always
stay: that they exist makes the kernel give every connection a NAT binding at their hooks, which
settles clashing tuples even where no rule matches (``nf_nat_alloc_null_binding``).
"""

from __future__ import annotations

from dataclasses import replace

from translate.ir import (
    Action,
    Apply,
    Choose,
    Goto,
    Jump,
    Lookup,
    LoweredChain,
    Policy,
    Program,
    Recent,
    Return,
    Statement,
    TableName,
)
from translate.passes.calls import callees_first, reachable
from translate.passes.control import terminal

__all__ = ["prune"]


def prune(program: Program) -> Program:
    """Return the Program without what has no effect."""
    slim: dict[str, LoweredChain] = {}
    empty: set[str] = set()
    for chain in callees_first(program):
        slim[chain.name] = replace(chain, statements=_statements(chain, empty))
        if chain.hook is None and not slim[chain.name].statements:
            empty.add(chain.name)
    slimmed = replace(program, chains=tuple(slim[chain.name] for chain in program.chains))
    reached = reachable(slimmed)
    return replace(
        slimmed, chains=tuple(c for c in slimmed.chains if c.name in reached and not _passes_all(c))
    )


def _passes_all(chain: LoweredChain) -> bool:
    return (
        chain.hook is not None
        and not chain.statements
        and chain.policy is Policy.ACCEPT
        and chain.table is not TableName.NAT
    )


def _statements(chain: LoweredChain, empty: set[str]) -> tuple[Statement, ...]:
    kept: list[Statement] = []
    for statement in chain.statements:
        slim = _slim(statement, empty)
        if slim is None:
            continue
        kept.append(slim)
        if isinstance(slim, Apply) and not slim.tests and _always_leaves(slim.actions):
            break
    while kept and _only_returns(kept[-1]):
        kept.pop()
    return tuple(kept)


def _slim(statement: Statement, empty: set[str]) -> Statement | None:
    idle = not any(isinstance(test, Recent) for test in statement.tests)
    match statement:
        case Apply():
            actions = _without_empty(statement.actions, empty)
            return replace(statement, actions=actions) if actions or not idle else None
        case Lookup():
            entries = tuple(
                replace(entry, actions=actions)
                for entry in statement.entries
                if (actions := _without_empty(entry.actions, empty))
            )
            return replace(statement, entries=entries) if entries or not idle else None
        case Choose():
            branches = tuple(
                replace(branch, actions=_without_empty(branch.actions, empty))
                for branch in statement.branches
            )
            does_something = any(branch.actions for branch in branches)
            return replace(statement, branches=branches) if does_something or not idle else None


def _without_empty(actions: tuple[Action, ...], empty: set[str]) -> tuple[Action, ...]:
    match actions[-1:]:
        case (Jump(chain=name),) if name in empty:
            return actions[:-1]
        case (Goto(chain=name),) if name in empty:
            return (*actions[:-1], Return())
        case _:
            return actions


def _always_leaves(actions: tuple[Action, ...]) -> bool:
    return bool(actions) and (isinstance(actions[-1], Return | Goto) or terminal(actions[-1]))


def _only_returns(statement: Statement) -> bool:
    return (
        isinstance(statement, Apply)
        and statement.actions == (Return(),)
        and not any(isinstance(test, Recent) for test in statement.tests)
    )
