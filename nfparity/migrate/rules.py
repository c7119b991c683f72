"""The rules of one family as they were printed, read: what is replaced, and what packets are tried with."""

from __future__ import annotations

from dataclasses import dataclass

from harness.corpus.rulefile import InputOptions, read_some
from nfparity.migrate.ipsets import live_ipsets
from nfparity.migrate.kept_tables import insist_on_separate, moved, moved_text, staying
from translate.errors import ParseError
from translate.ir import Family, Ruleset
from translate.read import read_ipsets, with_sets

__all__ = ["Rules", "read_rules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """``text`` as iptables-save printed it, ``ipsets`` as ipset did, empty where no rule asks one.

    ``tried`` are the rules that packets meet in the trial: all of them, or without the ``left`` tables that
    stay in iptables where those cannot be read.
    """

    text: str
    ipsets: str
    left: tuple[str, ...]
    tried: Ruleset

    @property
    def moved(self) -> Ruleset:
        """The tables that are replaced."""
        return moved(self.tried, self.left)

    @property
    def staying(self) -> Ruleset:
        """The tables that stay, as far as packets meet them."""
        return staying(self.tried, self.left)


def read_rules(text: str, family: Family, name: str, left: tuple[str, ...], ipsets: str | None) -> Rules:
    """Read rules, with ipsets if they ask some: those that were printed, or, with None, those in force.

    Raises ParseError for a table that is to be replaced, UnsupportedError where one shares a list with a
    table that stays.
    """
    try:
        ruleset = _read(text, family, name)
    except ParseError:
        if not left:
            raise
        ruleset = _read(moved_text(text, left), family, name)
    sets = ""
    if any(ruleset.set_tests()):
        sets = live_ipsets() if ipsets is None else ipsets
        ruleset = with_sets(ruleset, read_ipsets(sets.encode(errors="surrogateescape"), name="ipset save"))
    if left:
        insist_on_separate(ruleset, text, left)
    return Rules(text=text, ipsets=sets, left=left, tried=ruleset)


def _read(text: str, family: Family, name: str) -> Ruleset:
    return read_some(text.encode(errors="surrogateescape"), name=name, options=InputOptions(family=family))
