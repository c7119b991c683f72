"""A large dump read by a sample of it: what differs in constants alone is read when somebody asks for it."""

from __future__ import annotations

from functools import partial
from itertools import compress
from typing import Final

from translate.collector import collector_paused
from translate.errors import ParseError
from translate.ir import Families, Family, Ruleset, Table
from translate.read.families import members_of, proves
from translate.read.save import read_lines, read_save
from translate.read.skim import skim

__all__ = ["LARGE", "read_condensed"]

LARGE: Final = 1 << 18
"""Characters from which on a dump is worth it."""


def read_condensed(text: str, *, name: str, family: Family) -> Ruleset | None:
    """Return the ruleset of ``iptables-save`` text, whose tables are read when they are asked for.

    None where the text has to be read line by line: it has no families of rules, is in an unusual form,
    or something is wrong with it, which the reader then says.
    """
    tables = skim(text, family)
    lines = text.split("\n")
    members = None if tables is None else members_of(tables, family, len(lines) - 1)
    if members is None:
        return None
    try:
        sample = read_lines(compress(enumerate(lines, 1), members.shown), name=name, family=family)
    except ParseError:
        return None
    if not proves(sample.tables, members):
        return None
    families = Families(
        sample=sample,
        families=members.families,
        line=partial(_line, lines),
        whole=partial(_whole, text, name, family),
    )
    return Ruleset.condensed(families)


def _line(lines: list[str], number: int) -> str:
    return lines[number - 1]


@collector_paused()
def _whole(text: str, name: str, family: Family) -> tuple[Table, ...]:
    return read_save(text, name=name, family=family).tables
