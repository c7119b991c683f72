"""Faults of one input, collected so that one run reports many."""

from __future__ import annotations

from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.ir import Origin
from translate.read.rule.base import RuleError
from translate.read.spelling.scanner import scan

__all__ = ["Faults"]

_MOST: Final = 20
_LONGEST_MESSAGE: Final = 400


class Faults:
    """The faults of an input; false if there are none."""

    def __init__(self) -> None:
        self._diagnostics: list[Diagnostic] = []

    def __bool__(self) -> bool:
        return bool(self._diagnostics)

    def report(self, origin: Origin, message: str, hint: str | None = None) -> None:
        """Add a fault at a place. A message may quote the input; unprintable characters become ``?``."""
        self._diagnostics.append(Diagnostic(origin, _printable(message), hint and _printable(hint)))

    def report_rule(self, origin: Origin, error: RuleError) -> None:
        """Add a fault at a word of the rule that begins at ``origin``."""
        words = scan(origin.text)
        if error.word >= len(words):
            place = origin.at(len(origin.text.rstrip()) + 1)
        else:
            place = origin.at(words[error.word].column + error.offset)
        self.report(place, error.message, error.hint)

    def add(self, diagnostics: list[Diagnostic]) -> None:
        """Add faults found by :mod:`translate.read.tables.checks`."""
        for diagnostic in diagnostics:
            self.report(diagnostic.origin, diagnostic.message, diagnostic.hint)

    def raise_if_any(self) -> None:
        """Raise ParseError, if there are faults, with the first 20 by position and the number of others."""
        if not self._diagnostics:
            return
        ordered = sorted(self._diagnostics, key=lambda d: (d.origin.line, d.origin.column))
        first_faults, rest = ordered[:_MOST], ordered[_MOST:]
        if rest:
            where = Origin(rest[0].origin.file, rest[0].origin.line, rest[0].origin.column)
            first_faults.append(Diagnostic(where, f"and {len(rest)} more from here on"))
        raise ParseError(tuple(first_faults))


def _printable(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text[:_LONGEST_MESSAGE])
    return shown + "…" if len(text) > _LONGEST_MESSAGE else shown
