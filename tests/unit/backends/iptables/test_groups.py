"""Names of groups become numbers, and nothing else changes."""

from __future__ import annotations

from backends.iptables.groups import numbered_groups
from translate.read import read_ruleset
from translate.write import write_save

RULES = """*filter
:FORWARD ACCEPT [0:0]
:default - [0:0]
-A FORWARD -m devgroup {options} -m comment --comment default -j default
COMMIT
"""


def written(options: str) -> str:
    return write_save(numbered_groups(read_ruleset(RULES.format(options=options).encode(), name="rules")))


def test_the_default_group_is_a_number() -> None:
    expected = RULES.format(options="! --src-group 0x0 --dst-group 0x7")
    assert written("! --src-group default --dst-group 0x7") == expected


def test_rules_without_names_are_the_same_object() -> None:
    ruleset = read_ruleset(RULES.format(options="--src-group 0x7").encode(), name="rules")
    assert numbered_groups(ruleset) is ruleset
