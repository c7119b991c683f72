"""Rulesets of single rules."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab import translated_rules
from tests.lab.translated_rules import Fate, by_extension, single_rules, summary
from translate.ir import Drop
from translate.read import read_ruleset

ROOT = Path(__file__).parents[3]
RULES = b"""\
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:first - [0:0]
:second - [0:0]
-A INPUT -j first
-A FORWARD -p tcp -j first
-A first -s 10.0.0.1 -g second
-A first -p udp -j ACCEPT
-A second -m mark --mark 1
COMMIT
"""


def test_a_rule_comes_with_the_jumps_that_lead_to_it() -> None:
    singles = list(single_rules(read_ruleset(RULES, name="rules")))
    assert [rule.origin.line for rule, _ in singles] == [9, 10]
    lines = [[r.origin.line for r in ruleset.rules()] for _, ruleset in singles]
    assert lines == [[6, 9], [6, 8, 10]]


def test_a_rule_without_a_target_drops() -> None:
    _, ruleset = list(single_rules(read_ruleset(RULES, name="rules")))[-1]
    assert [rule.actions for rule in ruleset.rules()][-1] == (Drop(),)


def test_fates_are_counted_for_each_translator_and_each_extension() -> None:
    text = b"*filter\n-A INPUT -m mark --mark 1 -j DROP\n-A INPUT -m mark --mark 2 -j LOG\nCOMMIT\n"
    first, second = read_ruleset(text, name="rules").rules()
    fates = {"one": [(Fate.CORRECT, first), (Fate.COMMENT, second)], "two": [(Fate.REFUSED, first)]}
    assert summary(fates).splitlines()[2:] == [
        "| one | 1 | 0 | 0 | 1 | 0 | 0 |",
        "| two | 0 | 0 | 0 | 0 | 1 | 0 |",
    ]
    fates["two"].append((Fate.WRONG, second))
    assert by_extension(fates).splitlines()[2:] == [
        "| `-j LOG` | 1 | 1 a comment | 1 wrong |",
        "| `-m mark` | 2 | 1 correct, 1 a comment | 1 wrong, 1 refused |",
    ]


def test_a_rule_that_is_left_out_is_a_comment() -> None:
    assert translated_rules._COMMENT.search("# -t filter -A INPUT -m string --algo bm -j DROP \n")
    assert translated_rules._COMMENT.search("add table ip filter\n# -A INPUT -m string -j DROP\n")
    assert not translated_rules._COMMENT.search("# Translated by iptables-restore-translate v1.8.9\n")


def test_the_page_names_what_it_leaves_out() -> None:
    page = (ROOT / "docs/translators.md").read_text()
    listed = set(re.findall(r"^\| `(-[jm] \S+)` \|", page, re.MULTILINE))
    every = set(re.findall(r"^\| `(-[jm] \S+)` \|", (ROOT / "docs/options.md").read_text(), re.MULTILINE))
    left_out = page[page.index("but these: ") : page.index("because the kernel of the run")]
    assert every - listed == set(re.findall(r"`(-[jm] \S+)`", left_out))
