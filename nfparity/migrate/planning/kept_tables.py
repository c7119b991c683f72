"""Tables kept in iptables at the user's request, while the other tables are replaced.

Each table has its own hook priorities, so it works in the same way whether the other tables are in iptables
or nftables. Tables interact through the packet's mark and conntrack, which iptables and nftables share, and
through lists of ``-m recent`` and ipsets, which they do not share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nfparity.migrate.state.tables import split
from translate.dataclass import replace
from translate.errors import Refusal, UnsupportedError
from translate.ir import Recent, Rule, Rules, Ruleset, Table
from translate.read.save import lines_by_table

__all__ = ["insist_on_separate", "kept_rules", "moved", "moved_text"]

_WHERE = "a table that stays"


def moved(rules: Rules, left: Collection[str]) -> Rules:
    """Return the rules of the replaced tables."""
    if not left:
        return rules
    ruleset = rules.whole()
    return _only(ruleset, [table for table in ruleset.tables if table.name not in left])


def kept_rules(ruleset: Ruleset, left: Collection[str]) -> Ruleset:
    """Return the ruleset of the kept tables."""
    return _only(ruleset, [table for table in ruleset.tables if table.name in left])


def moved_text(text: str, left: Collection[str]) -> str:
    """Return iptables-save text without the kept tables; all other lines keep their numbers."""
    lines = lines_by_table(text.removesuffix("\n"))
    return "".join("#\n" if table in left else f"{line}\n" for table, line in lines)


def insist_on_separate(ruleset: Ruleset, text: str, left: Collection[str]) -> None:
    """Raise UnsupportedError with the replaced rules that depend on a kept table.

    They use the same list of ``-m recent`` as a kept table, or an ipset that a kept table changes. (The
    translation has a copy of each ipset, which would not follow.) ``text`` is the output of iptables-save,
    because a kept table may be unreadable.
    """
    stay = [table for table in split(text).values() if table.name in left]
    lists = {name for table in stay for name in table.lists}
    written = {name for table in stay for name in table.sets_written}
    replaced = moved(ruleset, left).whole()
    refusals = (
        *(
            Refusal(rule.origin, _WHERE, "shared-list", f"a kept table uses the -m recent list {name}, too")
            for rule in replaced.rules()
            for name in _lists(rule)
            if name in lists
        ),
        *(
            Refusal(rule.origin, _WHERE, "shared-set", f"a kept table changes the ipset {test.name}")
            for rule, test in replaced.set_uses()
            if test.name in written
        ),
    )
    if refusals:
        raise UnsupportedError(refusals)


def _only(ruleset: Ruleset, tables: list[Table]) -> Ruleset:
    return replace(ruleset, tables=tuple(tables))


def _lists(rule: Rule) -> Iterator[str]:
    return (test.name for test in rule.tests if isinstance(test, Recent))
