"""Refusal of rules that must not run twice for a packet, which they do while both rulesets are loaded.

If two NAT tables have the same hook, the second does not run after the first has bound the connection
(``nf_nat_inet_fn``). All other rules run twice, and must have the same result the second time. This module
finds single rules that do not; the trial's packets test whole tables.
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
    """Raise UnsupportedError with every rule outside nat that has a different result when it runs twice.

    In condensed rules, checking the sample is enough: the others differ only in addresses and ports.
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
        yield "makes a random decision each time: run twice, it would match more often than it should"
    for action in rule.actions:
        match action:
            case SetMark(value, mask) | SetConnmark(value, mask) if value & ~mask:
                yield f"toggles bits {value & ~mask:#x} of the mark: run twice, it has no effect on them"
            case SetConnmark(shift=shift) if shift:
                yield "shifts the connection's mark: run twice, it shifts it further"
            case SaveMark(nfmask, ctmask, shift) if toggled := _shifted(nfmask, shift) & ~ctmask:
                yield f"toggles bits {toggled:#x} of the connection's mark"
            case RestoreMark(nfmask, ctmask, shift) if toggled := _shifted(ctmask, shift) & ~nfmask:
                yield f"toggles bits {toggled:#x} of the mark"


def _shifted(bits: int, shift: int) -> int:
    return bits << shift & 0xFFFFFFFF if shift >= 0 else bits >> -shift
