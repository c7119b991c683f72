"""``prune``: statements and chains without effect are removed.

*Before*: any verified Program.

*After*: every statement has an effect, and none follows a statement that always leaves the chain. No chain is
unreachable (``KUBE-KUBELET-CANARY``) or empty, except base chains that have an effect by themselves.

*Why the meaning is preserved*: a jump to an empty chain returns at once, a goto to one is a return, and a
return at the end of a chain is the same as its end. A base chain without statements lets everything pass when
its policy is ACCEPT; with policy DROP it stays. Base chains of nat always stay: because they exist, the
kernel gives every connection a NAT binding at their hooks, which resolves clashing tuples even where no rule
matches (``nf_nat_alloc_null_binding``).
"""

from __future__ import annotations

from typing import Final

from translate.dataclass import replace
from translate.ir import (
    Account,
    Action,
    Apply,
    Choose,
    ClusterShare,
    ConnLabel,
    Goto,
    HashLimit,
    Jump,
    Lookup,
    LoweredChain,
    Policy,
    Program,
    Recent,
    Return,
    SetUpdate,
    Statement,
    TableName,
)
from translate.passes.calls import callee, callees_first, reachable
from translate.passes.control import terminal
from translate.passes.structural_sharing import holding, is_same

__all__ = ["prune"]


def prune(program: Program) -> Program:
    """Return the Program without statements and chains that have no effect."""
    slim: dict[str, LoweredChain] = {}
    empty: set[str] = set()
    # Chains that are unreachable now remain so; after ``template`` these are most chains.
    for chain in callees_first(program, [chain for chain in program.chains if chain.hook is not None]):
        statements = _statements(chain, empty)
        slim[chain.name] = holding(chain, statements)
        if chain.hook is None and not statements:
            empty.add(chain.name)
    slimmed = replace(program, chains=tuple(slim[c.name] for c in program.chains if c.name in slim))
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


def _statements(chain: LoweredChain, empty: set[str]) -> list[Statement]:
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
    return kept


def _slim(statement: Statement, empty: set[str]) -> Statement | None:
    """Return the statement without jumps to empty chains (itself if it has none); None if nothing is left."""
    match statement:
        case Apply():
            actions = _without_empty(statement.actions, empty)
            if actions is statement.actions and actions:
                return statement
            return replace(statement, actions=actions) if actions or _leaves_traces(statement) else None
        case Lookup():
            entries = tuple(
                entry if actions is entry.actions else replace(entry, actions=actions)
                for entry in statement.entries
                if (actions := _without_empty(entry.actions, empty))
            )
            return replace(statement, entries=entries) if entries or _leaves_traces(statement) else None
        case Choose():
            branches = tuple(
                branch if actions is branch.actions else replace(branch, actions=actions)
                for branch in statement.branches
                for actions in (_without_empty(branch.actions, empty),)
            )
            if not any(branch.actions for branch in branches) and not _leaves_traces(statement):
                return None
            same = is_same(branches, statement.branches)
            return statement if same else replace(statement, branches=branches)


_TRACES: Final = (Recent, Account, HashLimit, SetUpdate, ConnLabel, ClusterShare)


def _leaves_traces(statement: Statement) -> bool:
    """Return whether the tests may change a list or a set, take from a shared bucket, or count."""
    return any(isinstance(test, _TRACES) for test in statement.tests)


def _without_empty(actions: tuple[Action, ...], empty: set[str]) -> tuple[Action, ...]:
    if callee(actions) not in empty:
        return actions
    return actions[:-1] if isinstance(actions[-1], Jump) else (*actions[:-1], Return())


def _always_leaves(actions: tuple[Action, ...]) -> bool:
    return bool(actions) and (isinstance(actions[-1], (Return, Goto)) or terminal(actions[-1]))


def _only_returns(statement: Statement) -> bool:
    return isinstance(statement, Apply) and statement.actions == (Return(),) and not _leaves_traces(statement)
