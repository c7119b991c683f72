"""Chains that exist but are not in the input, which is a listing of one chain or a fragment."""

from __future__ import annotations

from translate.ir import (
    TABLE_HOOKS,
    Chain,
    Hidden,
    Hook,
    Origin,
    Rule,
    TableName,
    Unknown,
)

__all__ = ["add_hidden", "hidden_rule"]


def hidden_rule(reason: str, origin: Origin) -> Rule:
    """Return a rule that represents any number of unknown rules."""
    return Rule(tests=(), actions=(), unknown=(Unknown(reason, Hidden.RULES),), origin=origin)


def add_hidden(chains: dict[str, Chain], table: TableName) -> None:
    """Add the missing chains: those that a rule jumps to, and the built-in ones.

    Each has one :func:`hidden_rule`.
    """
    shown_chains = tuple(chains.values())
    top = shown_chains[0].origin if shown_chains else Origin("<none>")
    for hook in TABLE_HOOKS[table]:
        if hook.value not in chains:
            chains[hook.value] = _hidden(hook.value, hook, top)
    for chain in shown_chains:
        for rule in chain.rules:
            if rule.callee is not None and rule.callee not in chains:
                chains[rule.callee] = _hidden(rule.callee, None, rule.origin)


def _hidden(name: str, hook: Hook | None, origin: Origin) -> Chain:
    rule = hidden_rule(f"chain {name} is not shown", origin)
    return Chain(name=name, rules=(rule,), hook=hook, origin=origin)
