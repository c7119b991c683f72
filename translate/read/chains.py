"""What must hold of a table as a whole: the checks of ``mark_source_chains`` and ``xt_check_*``.

Every jump leads to a user chain of the same table, no chain reaches itself, and what is valid only
in some hooks is reached from those hooks only.
"""

from __future__ import annotations

from typing import Final

from translate.errors import Diagnostic
from translate.ir import AnyOf, Chain, Field, FieldTest, Goto, Hook, Jump, Origin, Rule, Table
from translate.read.extensions import TARGETS
from translate.read.scanner import scan

__all__ = ["check_table"]

_IN_FIELDS: Final = frozenset({Field.FIB_SADDR_TYPE_IIF, Field.FIB_DADDR_TYPE_IIF})
_OUT_FIELDS: Final = frozenset({Field.FIB_SADDR_TYPE_OIF, Field.FIB_DADDR_TYPE_OIF})
_NO_IN_DEVICE: Final = (Hook.OUTPUT, Hook.POSTROUTING)
_NO_OUT_DEVICE: Final = (Hook.PREROUTING, Hook.INPUT)

_Edge = tuple[str, Rule]


def check_table(table: Table) -> list[Diagnostic]:
    """Return what is wrong between the chains of ``table``."""
    chains = {chain.name: chain for chain in table.chains}
    found: list[Diagnostic] = []
    edges: dict[str, list[_Edge]] = {}
    for chain in table.chains:
        out = edges[chain.name] = []
        for rule in chain.rules:
            action = rule.actions[0] if rule.actions else None
            if not isinstance(action, Jump | Goto):
                continue
            callee = chains.get(action.chain)
            if callee is None:
                message = f'no chain and no target is called "{action.chain}"'
                found.append(Diagnostic(_at_word(rule.origin, action.chain), message))
            elif callee.hook is not None:
                message = f'"{action.chain}" is a built-in chain; no rule can jump to it'
                found.append(Diagnostic(_at_word(rule.origin, action.chain), message))
            else:
                out.append((action.chain, rule))
    loops = _loops(edges)
    found += loops
    if not loops:
        found += _misplaced(table, edges)
    return found


def _loops(edges: dict[str, list[_Edge]]) -> list[Diagnostic]:
    """Depth first, without recursion: a chain of chains may be thousands long."""
    found: list[Diagnostic] = []
    finished: set[str] = set()
    for root in edges:
        if root in finished:
            continue
        path = [root]
        on_path = {root}
        pending = [iter(edges[root])]
        while pending:
            step = next(pending[-1], None)
            if step is None:
                pending.pop()
                done = path.pop()
                on_path.discard(done)
                finished.add(done)
                continue
            callee, rule = step
            if callee in on_path:
                way = " → ".join([*path[path.index(callee) :], callee])
                found.append(Diagnostic(_at_word(rule.origin, callee), f"chains form a loop: {way}"))
            elif callee not in finished:
                path.append(callee)
                on_path.add(callee)
                pending.append(iter(edges[callee]))
    return found


def _misplaced(table: Table, edges: dict[str, list[_Edge]]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    reached = _reached(table, edges)
    for chain in table.chains:
        for rule in chain.rules:
            found += _misplaced_rule(chain, rule, reached[chain.name])
    return found


def _reached(table: Table, edges: dict[str, list[_Edge]]) -> dict[str, dict[Hook, None]]:
    """Return the hooks from which each chain can be reached, in the order of the table."""
    reached: dict[str, dict[Hook, None]] = {chain.name: {} for chain in table.chains}
    for chain in table.chains:
        if chain.hook is None:
            continue
        pending = [chain.name]
        while pending:
            name = pending.pop()
            if chain.hook in reached[name]:
                continue
            reached[name][chain.hook] = None
            pending += [callee for callee, _ in edges[name]]
    return reached


def _misplaced_rule(chain: Chain, rule: Rule, hooks: dict[Hook, None]) -> list[Diagnostic]:
    found = []
    how = "" if chain.hook is not None else f", from which chain {chain.name} is reached"
    extension = TARGETS.get(rule.target.name) if rule.target is not None else None
    if extension is not None and extension.hooks is not None:
        wrong = [hook for hook in hooks if hook not in extension.hooks]
        if wrong:
            found.append(
                Diagnostic(
                    _at_word(rule.origin, extension.name),
                    f"target {extension.name} is not valid in {wrong[0]}{how}",
                    "only in " + ", ".join(sorted(extension.hooks)),
                )
            )
    for test in rule.tests:
        for part in test.tests if isinstance(test, AnyOf) else (test,):
            if not isinstance(part, FieldTest):
                continue
            if part.field in _IN_FIELDS:
                wrong, option = [h for h in hooks if h in _NO_IN_DEVICE], "--limit-iface-in"
            elif part.field in _OUT_FIELDS:
                wrong, option = [h for h in hooks if h in _NO_OUT_DEVICE], "--limit-iface-out"
            else:
                continue
            if wrong:
                message = f"{option} is not valid in {wrong[0]}{how}"
                found.append(Diagnostic(_at_word(rule.origin, option), message))
    return found


def _at_word(origin: Origin, text: str) -> Origin:
    """Return the place of the last word of the rule's line that is ``text``."""
    columns = [word.column for word in scan(origin.text) if word.text == text]
    return origin.at(columns[-1]) if columns else origin
