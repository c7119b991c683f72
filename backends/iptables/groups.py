"""Names of interface groups as numbers, for machines without ``/etc/iproute2/group``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from translate.ir import Option, Rule, Ruleset, Spelled

__all__ = ["numbered_groups"]


def numbered_groups(ruleset: Ruleset) -> Ruleset:
    """Return the ruleset with group 0 of ``-m devgroup`` as a number.

    ``iptables-save`` of Debian 12 prints its name, ``default``. iptables looks for names in
    ``/etc/iproute2/group`` only, and Debian 13 has that file in ``/usr/share``.
    """
    if not any(map(_has_name, _rules(ruleset))):
        return ruleset
    return replace(
        ruleset,
        tables=tuple(
            replace(
                table,
                chains=tuple(
                    replace(
                        chain,
                        rules=tuple(_numbered(rule) if _has_name(rule) else rule for rule in chain.rules),
                    )
                    for chain in table.chains
                ),
            )
            for table in ruleset.tables
        ),
    )


def _rules(ruleset: Ruleset) -> Iterator[Rule]:
    return (rule for table in ruleset.tables for chain in table.chains for rule in chain.rules)


def _has_name(rule: Rule) -> bool:
    return any(map(_is_named, rule.matches))


def _is_named(match: Spelled) -> bool:
    return match.name == "devgroup" and any(option.arguments == ("default",) for option in match.options)


def _numbered(rule: Rule) -> Rule:
    return replace(
        rule, matches=tuple(_match(match) if _is_named(match) else match for match in rule.matches)
    )


def _match(match: Spelled) -> Spelled:
    return replace(match, options=tuple(map(_option, match.options)))


def _option(option: Option) -> Option:
    return replace(option, arguments=("0x0",)) if option.arguments == ("default",) else option
