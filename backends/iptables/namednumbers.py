"""Names of interface groups and realms as numbers, for machines without the files of these names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.dataclass import replace
from translate.ir import Rule, Ruleset, Spelled

__all__ = ["numbered_names"]

_NAMES: Final = {"devgroup": "default", "realm": "cosmos"}
"""The name of 0 for each match, which ``iptables-save`` of Debian 12 prints."""


def numbered_names(ruleset: Ruleset) -> Ruleset:
    """Return the ruleset with group 0 of ``-m devgroup`` and realm 0 of ``-m realm`` as numbers.

    iptables looks for names in ``/etc/iproute2`` only, and Debian 13 has these files in ``/usr/share``.
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
    name = _NAMES.get(match.name)
    return name is not None and any(option.arguments == (name,) for option in match.options)


def _numbered(rule: Rule) -> Rule:
    return replace(
        rule, matches=tuple(_match(match) if _is_named(match) else match for match in rule.matches)
    )


def _match(match: Spelled) -> Spelled:
    name = _NAMES[match.name]
    options = (replace(o, arguments=("0x0",)) if o.arguments == (name,) else o for o in match.options)
    return replace(match, options=tuple(options))
