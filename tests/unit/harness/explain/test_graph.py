from __future__ import annotations

import pytest

from harness.explain.graph import calls, dot_text, tree_lines
from translate.errors import InputError
from translate.ir import Ruleset
from translate.read import read_ruleset

TEXT = """\
*filter
:FORWARD DROP [0:0]
:a - [0:0]
:b - [0:0]
:lonely - [0:0]
-A FORWARD -j a
-A FORWARD -g b
-A a -j b
-A lonely -j a
COMMIT
"""


@pytest.fixture
def ruleset() -> Ruleset:
    return read_ruleset(TEXT.encode(), name="t")


def test_tree(ruleset: Ruleset) -> None:
    assert list(tree_lines(ruleset, start=None)) == [
        "filter FORWARD: 2 rules (policy DROP)",
        "  line 6 calls a: 1 rule",
        "    line 8 calls b: 0 rules",
        "  line 7 goes to b: 0 rules, see above",
        "filter lonely: 1 rule, no rule jumps to it",
    ]
    assert list(tree_lines(ruleset, start="a")) == ["filter a: 1 rule", "  line 8 calls b: 0 rules"]
    with pytest.raises(InputError, match="no chain is called 'c'"):
        list(tree_lines(ruleset, start="c"))


def test_calls_and_dot(ruleset: Ruleset) -> None:
    assert [(c.caller, c.callee, c.goto) for c in calls(ruleset)] == [
        ("FORWARD", "a", False),
        ("FORWARD", "b", True),
        ("a", "b", False),
        ("lonely", "a", False),
    ]
    dot = dot_text(ruleset)
    assert '"filter/FORWARD" -> "filter/b" [label="7", style=dashed];' in dot
    assert dot.count("->") == 4


def test_deep_nesting() -> None:
    chains = "".join(f":c{n} - [0:0]\n" for n in range(3000))
    jumps = "".join(f"-A c{n} -j c{n + 1}\n" for n in range(2999))
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{chains}-A FORWARD -j c0\n{jumps}COMMIT\n"
    assert len(list(tree_lines(read_ruleset(text.encode(), name="deep"), start=None))) == 3001
