"""Rules that must not run twice for one packet, as both rulesets do while both are loaded.

Of two NAT tables at one hook the second does not run after the first has bound the connection
(``nf_nat_inet_fn``). All other rules run twice, and must have the same result the second time. This module
finds single rules that do not; the trial's packets test the tables as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from translate.errors import Refusal, UnsupportedError
from translate.ir import (
    Nth,
    Random,
    RestoreMark,
    Rule,
    Rules,
    Ruleset,
    SaveMark,
    SetConnmark,
    SetMark,
    TableName,
)

__all__ = ["insist_on_repeatable"]

_WHERE = "both at once"


def insist_on_repeatable(rules: Rules) -> None:
    """Raise UnsupportedError with every rule outside of nat that has another result the second time.

    Rules that the sample does not have differ from its rules in addresses and ports alone.
    """
    if _refusals(rules.sample):
        raise UnsupportedError(_refusals(rules.whole()))


def _refusals(ruleset: Ruleset) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(rule.origin, _WHERE, "twice", reason)
        for table in ruleset.tables
        if table.name is not TableName.NAT
        for rule in table.rules()
        for reason in _reasons(rule)
    )


def _reasons(rule: Rule) -> Iterator[str]:
    if any(isinstance(test, Random | Nth) for test in rule.tests):
        yield "draws at each asking: asked twice, it would decide more often than it should"
    for action in rule.actions:
        match action:
            case SetMark(value, mask) | SetConnmark(value, mask) if value & ~mask:
                yield f"toggles bits {value & ~mask:#x} of the mark: asked twice, they stay as they were"
            case SaveMark(nfmask, ctmask) if nfmask & ~ctmask:
                yield f"toggles bits {nfmask & ~ctmask:#x} of the connection's mark"
            case RestoreMark(nfmask, ctmask) if ctmask & ~nfmask:
                yield f"toggles bits {ctmask & ~nfmask:#x} of the mark"
