from __future__ import annotations

from pathlib import Path

import pytest

from translate.ir import Family, Ruleset
from translate.passes import LEVELS, lower, pass_names
from translate.read import read_ruleset

RULES = Path(__file__).resolve().parents[3] / "corpus/rulesets/kube-real/rules.iptables-save"


def test_a_level_or_a_pass_that_does_not_exist_is_refused() -> None:
    ruleset = Ruleset(family=Family.IP, tables=())
    with pytest.raises(ValueError, match="no optimisation level 7"):
        lower(ruleset, level=7)
    with pytest.raises(ValueError, match="template"):
        lower(ruleset, level=1, after="template")


def test_passes_are_numbered_where_they_run_again() -> None:
    assert pass_names(0) == ("flatten",)
    assert pass_names(1) == ("flatten", "prune", "normalise", "choose", "lookup", "prune-2")
    assert pass_names(2)[-3:] == ("prune-2", "template", "prune-3")


def test_a_program_behind_its_last_pass_is_the_lowered_one() -> None:
    ruleset = read_ruleset(RULES.read_bytes(), name="rules")
    for level in LEVELS:
        assert lower(ruleset, level=level, after=pass_names(level)[-1]) == lower(ruleset, level=level)
