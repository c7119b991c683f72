from __future__ import annotations

from harness.corpus.generate.minimal import cover


def test_nothing_that_some_choice_has_is_lost() -> None:
    choices = [{1, 2}, {2, 3}, {1, 2, 3, 4}, {5}, set()]
    assert cover(choices) == [2, 3]


def test_what_is_given_need_not_be_chosen() -> None:
    assert cover([{1, 2}, {2, 3}], {1, 2}) == [1]
    assert cover([{1}], {1}) == []


def test_the_earlier_of_two_equals_is_kept() -> None:
    assert cover([{1, 2}, {2, 1}]) == [0]


def test_gains_that_shrink_are_weighed_anew() -> None:
    choices = [{1, 2, 3, 4}, {1, 2, 3}, {4, 5}, {5, 6}]
    kept = cover(choices)
    assert kept == [0, 3]
