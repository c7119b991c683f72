"""Tables kept in iptables at the user's request, while the other tables are replaced.

Each table has its own hook priorities, so that it works in the same way wherever the other tables are. Tables
interact through the packet's mark and conntrack, which iptables and nftables share, and through lists of
``-m recent`` and ipsets, which they do not share.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from nfparity.migrate.tables import split
from translate.errors import Refusal, UnsupportedError
from translate.ir import AnyOf, Recent, Rule, Rules, Ruleset, Table, Test

__all__ = ["insist_on_separate", "moved", "moved_text", "staying"]

_WHERE = "a table that stays"


def moved(rules: Rules, left: Collection[str]) -> Rules:
    """Return the rules of the replaced tables."""
    if not left:
        return rules
    ruleset = rules.whole()
    return _only(ruleset, [table for table in ruleset.tables if table.name not in left])


def staying(ruleset: Ruleset, left: Collection[str]) -> Ruleset:
    """Return the ruleset of the kept tables."""
    return _only(ruleset, [table for table in ruleset.tables if table.name in left])


def moved_text(text: str, left: Collection[str]) -> str:
    """Return iptables-save text without the kept tables; all other lines keep their numbers."""
    lines = []
    table = ""
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("*"):
            table = line[1:]
        lines.append("#" if table in left else line)
        if line == "COMMIT":
            table = ""
    return "".join(f"{line}\n" for line in lines)


def insist_on_separate(ruleset: Ruleset, text: str, left: Collection[str]) -> None:
    """Raise UnsupportedError with the replaced rules that depend on a kept table.

    They use the same list of ``-m recent``, or an ipset that the kept table changes, of which the translation
    has a copy. ``text`` is the output of iptables-save, because a kept table may be unreadable.
    """
    stay = [table for table in split(text).values() if table.name in left]
    lists = {name for table in stay for name in table.lists}
    written = {name for table in stay for name in table.sets_written}
    replaced = moved(ruleset, left).whole()
    refusals = (
        *(
            Refusal(rule.origin, _WHERE, "shared-list", f"the list {name} of -m recent is asked there, too")
            for table in replaced.tables
            for rule, name in _asked(table)
            if name in lists
        ),
        *(
            Refusal(rule.origin, _WHERE, "shared-set", f"the ipset {test.name} is changed there")
            for rule, test in replaced.set_tests()
            if test.name in written
        ),
    )
    if refusals:
        raise UnsupportedError(refusals)


def _only(ruleset: Ruleset, tables: list[Table]) -> Ruleset:
    return replace(ruleset, tables=tuple(tables))


def _asked(table: Table) -> list[tuple[Rule, str]]:
    rules = (rule for chain in table.chains for rule in chain.rules)
    return [(rule, name) for rule in rules for test in rule.tests for name in _lists(test)]


def _lists(test: Test) -> tuple[str, ...]:
    match test:
        case Recent(name=name):
            return (name,)
        case AnyOf():
            return tuple(name for inner in test.tests for name in _lists(inner))
        case _:
            return ()
