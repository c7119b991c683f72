"""Live rules: rules that are reachable from a hook, which the kernel checks when a table is loaded.

``mark_source_chains`` of x_tables walks from each hook through the rules and into the chains that they call.
In each chain it stops after a rule that ends the chain for every packet. Rules that it does not reach are
dead: dead chains may call each other in a loop, and may have targets that are invalid there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from translate.ir.actions import Accept, Drop, Return
from translate.ir.ruleset import Chain, Rule

__all__ = ["calls", "has_loop", "live_chains", "live_rules"]


def live_rules(chain: Chain) -> tuple[Rule, ...]:
    """Return the rules of a chain up to the first one that ends it for every packet."""
    for index, rule in enumerate(chain.rules):
        if _is_end(rule):
            return chain.rules[: index + 1]
    return chain.rules


def calls(rules: Iterable[Rule]) -> Iterator[tuple[str, Rule]]:
    """Yield the callee and the rule, for each rule that calls a chain."""
    for rule in rules:
        if (name := rule.callee) is not None:
            yield name, rule


def _is_end(rule: Rule) -> bool:
    """Return whether every walk ends at the rule: it has no match, and a verdict as its target."""
    if rule.tests or rule.matches or rule.unknown or not rule.actions:
        return False
    if not isinstance(rule.actions[-1], (Accept, Drop, Return)):
        return False
    return all(option.name in ("-s", "-d", "-p") for option in rule.base)


def live_chains(chains: Iterable[Chain]) -> dict[str, tuple[Rule, ...]]:
    """Return the chains of a table that are reachable from a hook, with their live rules, in table order."""
    by_name = {chain.name: chain for chain in chains}
    live = {chain.name: live_rules(chain) for chain in by_name.values() if chain.hook is not None}
    todo = list(live)
    while todo:
        for name, _ in calls(live[todo.pop()]):
            if name in by_name and name not in live:
                live[name] = live_rules(by_name[name])
                todo.append(name)
    return {name: live[name] for name in by_name if name in live}


def has_loop(chains: Iterable[Chain]) -> bool:
    """Return whether a chain of the table can reach itself; the kernel accepts this of dead chains only."""
    callers: dict[str, list[str]] = {}
    waits: dict[str, int] = {}
    for chain in chains:
        called = {name for rule in chain.rules if (name := rule.callee) is not None}
        waits[chain.name] = len(called)
        for name in called:
            callers.setdefault(name, []).append(chain.name)
    free = [name for name, count in waits.items() if not count]
    while free:
        for caller in callers.get(free.pop(), ()):
            waits[caller] -= 1
            if not waits[caller]:
                free.append(caller)
    return any(waits.values())
