"""The call graph of the chains of a ruleset, as a tree and as a Graphviz graph."""

from __future__ import annotations

from collections.abc import Iterator

from translate.dataclass import dataclass
from translate.errors import InputError
from translate.ir import Goto, Hook, Rule, Ruleset, Table

__all__ = ["Call", "calls", "dot_text", "tree_lines"]

_DEEPEST = 40
"""The deepest level of indentation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A rule that jumps (or goes) from one chain to another of its table."""

    table: str
    caller: str
    callee: str
    goto: bool
    rule: Rule


def calls(ruleset: Ruleset) -> Iterator[Call]:
    """Yield every call, in the order of the rules."""
    for table in ruleset.tables:
        for chain in table.chains:
            for rule in chain.rules:
                if rule.callee is not None:
                    yield Call(
                        table=table.name.value,
                        caller=chain.name,
                        callee=rule.callee,
                        goto=isinstance(rule.actions[0], Goto),
                        rule=rule,
                    )


def tree_lines(ruleset: Ruleset, *, start: str | None) -> Iterator[str]:
    """Yield the calls as an indented tree, from ``start`` or from every built-in chain.

    A chain that was shown before is only named. Raises InputError when there is no chain ``start``.
    """
    by_caller: dict[tuple[str, str], list[Call]] = {}
    for call in calls(ruleset):
        by_caller.setdefault((call.table, call.caller), []).append(call)
    any_chain = False
    for table in ruleset.tables:
        shown: set[str] = set()
        for chain in table.chains:
            if chain.name == start or (start is None and chain.hook is not None):
                any_chain = True
                policy = f" (policy {chain.policy})" if chain.policy is not None else ""
                yield f"{table.name} {chain.name}: {_size(table, chain.name)}{policy}"
                yield from _below(table, chain.name, by_caller, shown, 1)
        if start is None:
            called = {c.callee for t, c in ((c.table, c) for c in calls(ruleset)) if t == table.name.value}
            for chain in table.chains:
                if chain.hook is None and chain.name not in called:
                    yield f"{table.name} {chain.name}: {_size(table, chain.name)}, no rule jumps to it"
    if not any_chain:
        raise InputError(f"no chain is called {start!r}")


def _size(table: Table, name: str) -> str:
    chain = table.chain(name)
    if chain is not None and chain.is_hidden:
        return "not shown in the input"
    count = 0 if chain is None else len(chain.rules)
    return f"{count} rule{'' if count == 1 else 's'}"


def _below(
    table: Table, name: str, by_caller: dict[tuple[str, str], list[Call]], shown: set[str], depth: int
) -> Iterator[str]:
    # Not recursive: the depth of calls is limited only by the jump stack of x_tables.
    shown.add(name)
    pending = [(call, depth) for call in reversed(by_caller.get((table.name.value, name), []))]
    while pending:
        call, depth = pending.pop()
        verb = "goes to" if call.goto else "calls"
        again = ", see above" if call.callee in shown else ""
        line = f"line {call.rule.origin.line}" if call.rule.origin.line else "a rule"
        yield f"{'  ' * min(depth, _DEEPEST)}{line} {verb} {call.callee}: {_size(table, call.callee)}{again}"
        if not again:
            shown.add(call.callee)
            below = by_caller.get((table.name.value, call.callee), [])
            pending += [(c, depth + 1) for c in reversed(below)]


def dot_text(ruleset: Ruleset) -> str:
    """Return the calls as a Graphviz graph, one cluster per table."""
    lines = ["digraph rules {", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    for table in ruleset.tables:
        lines.append(f'  subgraph "cluster_{table.name}" {{')
        lines.append(f'    label="{table.name}";')
        for chain in table.chains:
            style = ", style=bold" if chain.hook in set(Hook) else ""
            label = f"{_quoted(chain.name)}\\n{_size(table, chain.name)}"
            lines.append(f'    "{table.name}/{_quoted(chain.name)}" [label="{label}"{style}];')
        lines.append("  }")
    for call in calls(ruleset):
        style = ", style=dashed" if call.goto else ""
        lines.append(
            f'  "{call.table}/{_quoted(call.caller)}" -> "{call.table}/{_quoted(call.callee)}"'
            f' [label="{call.rule.origin.line or ""}"{style}];'
        )
    lines.append("}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
