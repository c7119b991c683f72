"""The rules of one family: the text of iptables-save, and the rulesets that are replaced, kept and tested."""

from __future__ import annotations

from harness.corpus.formats.rulefile import insist_on_tables
from nfparity.migrate.planning.kept_tables import insist_on_separate, kept_rules, moved, moved_text
from nfparity.migrate.state.ipsets import live_ipsets
from translate import ir
from translate.condense import read_large
from translate.dataclass import dataclass
from translate.errors import ParseError
from translate.ir import Family, Ruleset
from translate.read import read_ipsets, with_sets

__all__ = ["Rules", "read_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The output of iptables-save (``text``) and of ``ipset save`` (``ipsets``, empty if no rule needs one).

    ``tried`` are the rules of the trial: all tables, except tables in ``left`` (kept in iptables) that
    cannot be read or simulated.
    """

    text: str
    ipsets: str
    left: tuple[str, ...]
    tried: ir.Rules

    @property
    def moved(self) -> ir.Rules:
        """The tables that are replaced."""
        return moved(self.tried, self.left)

    @property
    def kept_rules(self) -> Ruleset:
        """The kept tables that are part of the trial."""
        return kept_rules(self.tried.whole(), self.left)


def read_rules(text: str, family: Family, name: str, left: tuple[str, ...], ipsets: str | None) -> Rules:
    """Return rules and their ipsets: those in the text ``ipsets``, or those of the kernel if it is None.

    Raises ParseError for a table that is to be replaced, and UnsupportedError if it shares a list with a
    kept table.
    """
    try:
        rules = _read(text, family, name)
    except ParseError:
        if not left:
            raise
        rules = _read(moved_text(text, left), family, name)
    if left:
        rules = moved(rules, _undecided(kept_rules(rules.whole(), left)))
    sets = ""
    if any(rules.sample.set_uses()):
        sets = live_ipsets() if ipsets is None else ipsets
        known = read_ipsets(sets.encode(errors="surrogateescape"), name="ipset save")
        rules = with_sets(rules.whole(), known)
    if left:
        insist_on_separate(rules.whole(), text, left)
    return Rules(text=text, ipsets=sets, left=left, tried=rules)


def _undecided(ruleset: Ruleset) -> tuple[str, ...]:
    """Return the tables with a rule that the simulator cannot decide (an unmodelled match)."""
    return tuple(table.name for table in ruleset.tables if any(rule.is_undecided for rule in table.rules()))


def _read(text: str, family: Family, name: str) -> ir.Rules:
    rules = read_large(text.encode(errors="surrogateescape"), name=name, family=family)
    insist_on_tables(rules.sample, name)
    return rules
