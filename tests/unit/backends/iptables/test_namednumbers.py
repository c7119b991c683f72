"""Names of groups and realms become numbers, and nothing else changes."""

from __future__ import annotations

from backends.iptables.namednumbers import numbered_names
from translate.read import read_ruleset
from translate.write import write_save

RULES = """*filter
:FORWARD ACCEPT [0:0]
:default - [0:0]
-A FORWARD {match} -m comment --comment default -j default
COMMIT
"""


def written(match: str) -> str:
    return write_save(numbered_names(read_ruleset(RULES.format(match=match).encode(), name="rules")))


def test_the_default_group_is_a_number() -> None:
    expected = RULES.format(match="-m devgroup ! --src-group 0x0 --dst-group 0x7")
    assert written("-m devgroup ! --src-group default --dst-group 0x7") == expected


def test_the_first_realm_is_a_number() -> None:
    assert written("-m realm ! --realm cosmos") == RULES.format(match="-m realm ! --realm 0x0")
    assert written("-m realm --realm default") == RULES.format(match="-m realm --realm default")


def test_rules_without_names_are_the_same_object() -> None:
    ruleset = read_ruleset(RULES.format(match="-m devgroup --src-group 0x7").encode(), name="rules")
    assert numbered_names(ruleset) is ruleset
