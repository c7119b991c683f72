from __future__ import annotations

from fractions import Fraction

import pytest

from backends.simulator.chance.chooser import MOST_BRANCHES, Chooser, TooManyBranches, branches

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)


def test_every_branch_of_a_ladder_is_run_once_with_its_probability() -> None:
    def ladder(chooser: Chooser) -> str:
        if chooser.happens(THIRD):
            return "a"
        return "b" if chooser.happens(HALF) else "c"

    assert list(branches(ladder)) == [(THIRD, "a"), (THIRD, "b"), (THIRD, "c")]


@pytest.mark.parametrize("first", [(1, 0), (0,), (1, 1, 0), (7,), (1, 7)])
def test_a_branch_that_is_followed_first_changes_no_other(first: tuple[int, ...]) -> None:
    taken: list[tuple[int, ...]] = []

    def run(chooser: Chooser) -> tuple[bool, int]:
        made = chooser.happens(THIRD), chooser.choose((HALF, Fraction(0), HALF))
        taken.append(chooser.taken)
        return made

    made = list(branches(run, first))
    assert sorted(made) == sorted(branches(run))
    assert len(made) == 4
    if first == (1, 0):
        assert made[0] == (Fraction(2, 3) * HALF, (False, 0))
        assert taken[0] == first


def test_what_is_sure_or_impossible_is_no_branch() -> None:
    def run(chooser: Chooser) -> tuple[bool, bool]:
        return chooser.happens(Fraction(1)), chooser.happens(Fraction(0))

    assert list(branches(run)) == [(Fraction(1), (True, False))]


def test_a_choice_of_many_skips_those_of_no_weight() -> None:
    found = {r: p for p, r in branches(lambda c: c.choose((HALF, Fraction(0), HALF)))}
    assert found == {0: HALF, 2: HALF}


def test_chance_without_end_is_given_up() -> None:
    def run(chooser: Chooser) -> int:
        return sum(chooser.happens(HALF) for _ in range(15))

    found = branches(run)
    for _ in range(MOST_BRANCHES):
        next(found)
    with pytest.raises(TooManyBranches):
        next(found)
