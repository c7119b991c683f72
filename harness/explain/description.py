"""A ruleset in words, chain by chain: the tests and actions of each rule, and its hidden parts."""

from __future__ import annotations

from collections.abc import Iterator

from harness.corpus.formats.ruletext import action_text, effect_text, test_text
from translate.dataclass import dataclass
from translate.ir import Family, Rule, Ruleset, SetUpdate

__all__ = ["DescribedRule", "describe", "description_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedRule:
    """One rule in words. ``index`` counts from 1; ``action`` is None if the rule only counts or is unknown.

    ``effect`` describes the effect of the rule in every case.
    """

    table: str
    chain: str
    index: int
    line: int
    tests: tuple[str, ...]
    action: str | None
    effect: str
    unknown: tuple[str, ...]
    comment: str | None


def describe(ruleset: Ruleset) -> Iterator[DescribedRule]:
    """Yield every rule, in the order of the input."""
    for table in ruleset.tables:
        for chain in table.chains:
            for index, rule in enumerate(chain.rules, 1):
                yield DescribedRule(
                    table=table.name.value,
                    chain=chain.name,
                    index=index,
                    line=rule.origin.line,
                    tests=tuple(
                        test_text(test, ruleset.family)
                        for test in rule.tests
                        if not isinstance(test, SetUpdate)  # in the effect
                    ),
                    action=_action(rule, ruleset.family),
                    effect=effect_text(rule, ruleset.family),
                    unknown=tuple(unknown.reason for unknown in rule.unknown),
                    comment=rule.comment,
                )


def description_lines(ruleset: Ruleset) -> Iterator[str]:
    """Yield the description as text."""
    for note in ruleset.unknown:
        yield f"unknown: {note}"
    everywhere = _everywhere(ruleset)
    for reason in everywhere:
        yield f"unknown for every rule: {reason}"
    rules: dict[tuple[str, str], list[DescribedRule]] = {}
    for rule in describe(ruleset):
        rules.setdefault((rule.table, rule.chain), []).append(rule)
    for table in ruleset.tables:
        for chain in table.chains:
            policy = f" (policy {chain.policy})" if chain.policy is not None else ""
            described_rules = rules.get((table.name.value, chain.name), [])
            if chain.is_hidden:
                yield f"{table.name} {chain.name}: unknown: {'; '.join(described_rules[0].unknown)}"
                continue
            yield f"{table.name} {chain.name}{policy}{':' if described_rules else ': no rules'}"
            for described in described_rules:
                yield from _rule_lines(described, everywhere)


def _everywhere(ruleset: Ruleset) -> tuple[str, ...]:
    """Return the parts that are hidden in every rule, if there is more than one rule."""
    shown = [rule for rule in ruleset.rules() if rule.actions or rule.tests or rule.matches]
    first = shown[0].unknown if len(shown) > 1 else ()
    return tuple(unknown.reason for unknown in first if all(unknown in rule.unknown for rule in shown))


def _rule_lines(rule: DescribedRule, everywhere: tuple[str, ...]) -> Iterator[str]:
    condition = " and ".join(rule.tests)
    where = f" where {condition}" if condition else "" if rule.unknown else " always"
    yield f"  {rule.index}. line {rule.line}: {rule.effect}{where}"
    for reason in rule.unknown:
        if reason not in everywhere:
            yield f"       unknown: {reason}"


def _action(rule: Rule, family: Family) -> str | None:
    return action_text(rule.actions[0], family) if rule.actions else None
