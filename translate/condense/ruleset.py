"""A large dump as a sample of its rules, and the families of chains that it represents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from threading import Lock

from translate.collector import collector_paused
from translate.condense.families import families_of, holds
from translate.condense.members import RuleFamily
from translate.condense.skim import skim
from translate.dataclass import dataclass, field, replace
from translate.errors import ParseError
from translate.ir import Family, Origin, Ruleset
from translate.read.save import read_lines

__all__ = ["CondensedRuleset", "condense"]


@dataclass(slots=True)
class _Whole:
    """The ruleset with every rule, once it has been read; several threads may use it."""

    ruleset: Ruleset | None = None
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class CondensedRuleset:
    """A large ruleset: ``sample`` has some members of each family and all rules outside of families.

    A rule of the sample has its line number in the whole text. Everything else in the tables (policies,
    notes, tests of ipsets, hidden rules) is in the sample.
    """

    sample: Ruleset
    families: tuple[RuleFamily, ...]
    lines: Sequence[str] = field(repr=False)
    _whole: _Whole = field(default_factory=_Whole, init=False, compare=False, repr=False)

    @property
    def family(self) -> Family:
        """The family of the rules."""
        return self.sample.family

    def whole(self) -> Ruleset:
        """Return the ruleset with every rule. Raises ParseError if a member's line cannot be read."""
        with self._whole.lock:
            if self._whole.ruleset is None:
                self._whole.ruleset = self._read()
            return self._whole.ruleset

    def noted(self, note: str) -> CondensedRuleset:
        """Return the ruleset with one more note."""
        return replace(self, sample=self.sample.noted(note))

    @collector_paused()
    def _read(self) -> Ruleset:
        numbered = enumerate(self.lines, 1)
        ruleset = read_lines(numbered, name=self.sample.source, family=self.sample.family)
        return replace(ruleset, notes=self.sample.notes)

    def origin(self, line: int) -> Origin:
        """Return the place of the rule in a line."""
        return Origin(self.sample.source, line, 1, self.lines[line - 1])


def condense(text: str, *, name: str, family: Family) -> CondensedRuleset | None:
    """Return ``iptables-save`` text as a sample and families; ``name`` is for diagnostics.

    None if the text must be read line by line: it has no families, has an unusual form, breaks a condition of
    :mod:`translate.condense.families`, or is wrong, which the reader then reports.
    """
    tables = skim(text, family)
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    families = None if tables is None else families_of(tables, family, len(lines))
    if families is None:
        return None
    try:
        sample = read_lines(compress(enumerate(lines, 1), families.shown), name=name, family=family)
    except ParseError:
        return None
    if not holds(sample.tables, families):
        return None
    return CondensedRuleset(sample=sample, families=families.families, lines=lines)
