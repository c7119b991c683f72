from __future__ import annotations

import pytest

from tests.lab.random.matches import matching_rules, random_matches
from translate.ir import Family
from translate.passes import lower
from translate.write import write_save


@pytest.mark.parametrize("family", Family)
def test_every_ruleset_can_be_read_and_lowered(family: Family) -> None:
    for seed in range(40):
        ruleset = matching_rules(seed, family)
        assert ruleset.sets
        assert lower(ruleset, level=2).chains


def test_the_same_seed_gives_the_same_text() -> None:
    assert random_matches(7) == random_matches(7)
    assert random_matches(7) != random_matches(8)
    assert write_save(matching_rules(7)) != write_save(matching_rules(7, Family.IP6))
