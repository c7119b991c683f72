"""Smaller rulesets and flows: without some rules, a part of a rule, a jump, a step, or a header field.

A proposal changes the text of a ruleset and reads it again, so that every proposal can be written as a text.
Texts that cannot be read are not proposed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.packet import DEFAULT_TTL
from translate.dataclass import dataclass, replace
from translate.errors import ParseError, UnsupportedError
from translate.ir import Chain, Policy, Rule, Ruleset, Table
from translate.read import read_ruleset
from translate.write import write_save

__all__ = [
    "RuleId",
    "Shown",
    "read_again",
    "rule_ids",
    "with_rules",
    "without_call",
    "without_header",
    "without_part",
    "without_step",
]

_PLAIN: Final[Mapping[str, object]] = MappingProxyType(
    {
        **dict.fromkeys(("mark", "uid", "gid", "seq", "ack", "tos", "filled_to", "cpu"), 0),
        **dict.fromkeys(("mss", "smac", "dmac", "routing", "fragment", "time")),
        **dict.fromkeys(("hop_options", "destination_options")),
        "payload": b"",
        "bad_checksum": False,
        "ttl": DEFAULT_TTL,
    }
)
"""The fields of a packet that can be left out, with their values in a plain packet."""

RuleId = tuple[str, str, int]
"""The table, the chain and the index of a rule."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Rules and a flow that show a difference."""

    ruleset: Ruleset
    flow: Flow


def rule_ids(ruleset: Ruleset) -> tuple[RuleId, ...]:
    """Return the rules in the order in which they were written."""
    return tuple(
        (table.name.value, chain.name, index)
        for table in ruleset.tables
        for chain in table.chains
        for index in range(len(chain.rules))
    )


def with_rules(ruleset: Ruleset, kept: Collection[RuleId]) -> Ruleset | None:
    """Return the ruleset with the rules of ``kept`` only; None if it cannot be read."""
    tables = []
    for table in ruleset.tables:
        chains = []
        for chain in table.chains:
            rules = (r for n, r in enumerate(chain.rules) if (table.name.value, chain.name, n) in kept)
            chains.append(replace(chain, rules=tuple(rules)))
        tables.append(replace(table, chains=tuple(chains)))
    return read_again(replace(ruleset, tables=tuple(tables)))


def without_part(shown: Shown) -> Iterator[Shown]:
    """Yield the rules with one match or option of a rule left out, or one DROP policy replaced by ACCEPT."""
    ruleset = shown.ruleset
    for at, table in enumerate(ruleset.tables):
        for number, chain in enumerate(table.chains):
            for smaller in _smaller_chains(chain):
                chains = (*table.chains[:number], smaller, *table.chains[number + 1 :])
                changed = replace(table, chains=chains)
                tables = (*ruleset.tables[:at], changed, *ruleset.tables[at + 1 :])
                read = read_again(replace(ruleset, tables=tables))
                if read is not None:
                    yield replace(shown, ruleset=read)


def without_call(shown: Shown) -> Iterator[Shown]:
    """Yield the rules with the rules of a user chain in place of a jump to it.

    If the chain has only one rule, the rule is first proposed with the conditions of the jump added.
    """
    ruleset = shown.ruleset
    for at, table in enumerate(ruleset.tables):
        for smaller in _without_a_call(table):
            tables = (*ruleset.tables[:at], smaller, *ruleset.tables[at + 1 :])
            read = read_again(replace(ruleset, tables=tables))
            if read is not None and len(rule_ids(read)) < len(rule_ids(ruleset)):
                yield replace(shown, ruleset=read)


def without_step(shown: Shown) -> Iterator[Shown]:
    """Yield the flow with one step left out, the last one first; the first step stays."""
    steps = shown.flow.steps
    for at in range(len(steps) - 1, 0, -1):
        yield replace(shown, flow=replace(shown.flow, steps=steps[:at] + steps[at + 1 :]))


def without_header(shown: Shown) -> Iterator[Shown]:
    """Yield the flow with one field of a packet as in a plain packet: no mark, no options, no payload."""
    for at, step in enumerate(shown.flow.steps):
        if isinstance(step, Send):
            for name, plain in _PLAIN.items():
                if getattr(step.packet, name) != plain:
                    packet = replace(step.packet, **{name: plain})  # type: ignore[arg-type]  # of _PLAIN
                    changed = replace(step, packet=packet)
                    steps = (*shown.flow.steps[:at], changed, *shown.flow.steps[at + 1 :])
                    yield replace(shown, flow=replace(shown.flow, steps=steps))


def read_again(ruleset: Ruleset) -> Ruleset | None:
    """Return the ruleset without idle chains and tables, read from its text; None if it cannot be read."""
    tables = (_without_idle_chains(table) for table in ruleset.tables)
    some = tuple(table for table in tables if not _is_idle(table))
    try:
        text = write_save(replace(ruleset, tables=some, epilogue=()))
        read = read_ruleset(text.encode(), name=ruleset.source, family=ruleset.family)
    except (ParseError, UnsupportedError):
        return None
    return replace(read, sets=ruleset.sets)


def _smaller_chains(chain: Chain) -> Iterator[Chain]:
    if chain.policy is Policy.DROP:
        yield replace(chain, policy=Policy.ACCEPT)
    for number, rule in enumerate(chain.rules):
        for smaller in _smaller_rules(rule):
            yield replace(chain, rules=(*chain.rules[:number], smaller, *chain.rules[number + 1 :]))


def _smaller_rules(rule: Rule) -> Iterator[Rule]:
    for at, match in enumerate(rule.matches):
        yield replace(rule, matches=rule.matches[:at] + rule.matches[at + 1 :])
        if len(match.options) > 1:
            for number in range(len(match.options)):
                options = match.options[:number] + match.options[number + 1 :]
                smaller = replace(match, options=options)
                yield replace(rule, matches=(*rule.matches[:at], smaller, *rule.matches[at + 1 :]))
    for at in range(len(rule.base)):
        yield replace(rule, base=rule.base[:at] + rule.base[at + 1 :])
    if rule.target is not None:
        for at in range(len(rule.target.options)):
            options = rule.target.options[:at] + rule.target.options[at + 1 :]
            yield replace(rule, target=replace(rule.target, options=options))


def _without_a_call(table: Table) -> Iterator[Table]:
    for number, chain in enumerate(table.chains):
        for index, jump in enumerate(chain.rules):
            callee = None if jump.callee is None else table.chain(jump.callee)
            if callee is None or callee is chain:
                continue
            choices = [callee.rules]
            if len(callee.rules) == 1:
                choices.insert(0, (_joined(jump, callee.rules[0]),))
            for rules in choices:
                chains = list(table.chains)
                chains[number] = replace(chain, rules=chain.rules[:index] + rules + chain.rules[index + 1 :])
                if not any(r.callee == callee.name for c in chains if c is not callee for r in c.rules):
                    chains.remove(callee)
                yield replace(table, chains=tuple(chains))


def _joined(jump: Rule, rule: Rule) -> Rule:
    """Return the rule with the jump's conditions added; its own base options replace those of the jump."""
    own = {option.name for option in rule.base}
    base = tuple(option for option in jump.base if option.name not in own)
    return replace(rule, base=base + rule.base, matches=jump.matches + rule.matches)


def _without_idle_chains(table: Table) -> Table:
    """Leave out user chains without rules that no rule calls, and the counters of others."""
    called = {rule.callee for rule in table.rules()}
    chains = (
        replace(chain, counters=None)
        for chain in table.chains
        if chain.hook is not None or chain.rules or chain.name in called
    )
    return replace(table, chains=tuple(chains), preamble=())


def _is_idle(table: Table) -> bool:
    return not any(chain.rules or chain.policy is Policy.DROP for chain in table.chains)
