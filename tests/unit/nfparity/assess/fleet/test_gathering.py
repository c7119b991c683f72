"""Answers come in any order, are told as they come, and are asked for again where a machine failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from nfparity.assess.fleet.gathering import gather_answers
from nfparity.assess.fleet.node import Answer, Failure
from translate.errors import MachineError

BAD = Failure(2, "bad input")


def lacking(reason: str = "no memory") -> Failure:
    return Failure(3, reason, again=True)


class FakePool:
    """Answers each path with what is in store for it, the last path first; the last answer stays."""

    def __init__(self, **store: list[Failure | None]) -> None:
        self._store = store
        self.rounds: list[list[str]] = []

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        self.rounds.append(list(paths))
        for path in reversed(paths):
            left = self._store[path]
            yield Answer(path=path, failure=left.pop(0) if len(left) > 1 else left[0])


class Told:
    def __init__(self) -> None:
        self.all: list[tuple[str, int, bool]] = []

    def __call__(self, answer: Answer, done: int, again: bool) -> None:
        self.all.append((answer.path, done, again))


def test_answers_stand_in_the_order_of_the_paths_and_are_told_in_that_in_which_they_come() -> None:
    pool, told = FakePool(a=[None], b=[BAD], c=[None]), Told()
    answers = gather_answers(pool, ["a", "b", "c"], told)
    assert [one.path for one in answers] == ["a", "b", "c"]
    assert [one.failure for one in answers] == [None, BAD, None]
    assert told.all == [("c", 1, False), ("b", 2, False), ("a", 3, False)]
    assert pool.rounds == [["a", "b", "c"]]


def test_what_the_machine_failed_is_tried_again_after_all_others() -> None:
    pool, told = FakePool(a=[lacking(), None], b=[None]), Told()
    answers = gather_answers(pool, ["a", "b"], told)
    assert [one.failure for one in answers] == [None, None]
    assert pool.rounds == [["a", "b"], ["a"]]
    assert told.all == [("b", 1, False), ("a", 1, True), ("a", 2, False)]


def test_tries_end() -> None:
    pool, told = FakePool(a=[lacking()], b=[None]), Told()
    answers = gather_answers(pool, ["a", "b"], told, tries=3)
    assert answers[0].failure == lacking()
    assert pool.rounds == [["a", "b"], ["a"], ["a"]]
    assert [again for path, _, again in told.all if path == "a"] == [True, True, False]


def test_what_every_node_lacks_is_not_asked_for_again() -> None:
    pool, told = FakePool(a=[lacking("needs root")], b=[lacking("needs root")]), Told()
    answers = gather_answers(pool, ["a", "b"], told)
    assert [one.failure for one in answers] == [lacking("needs root")] * 2
    assert pool.rounds == [["a", "b"]]
    assert {(path, again) for path, _, again in told.all} >= {("a", False), ("b", False)}


def test_different_failures_of_all_are_tried_again() -> None:
    pool = FakePool(a=[lacking("this"), None], b=[lacking("that"), None])
    assert all(one.failure is None for one in gather_answers(pool, ["a", "b"], Told()))


class Forgetful:
    def __init__(self, *paths: str) -> None:
        self._paths = paths

    def answers(self, paths: Sequence[str]) -> Iterator[Answer]:
        return iter(Answer(path=path) for path in self._paths)


@pytest.mark.parametrize("paths", [("a",), ("a", "b", "b"), ("a", "z")])
def test_a_pool_that_loses_or_repeats_an_answer_is_found_out(paths: tuple[str, ...]) -> None:
    with pytest.raises(MachineError):
        gather_answers(Forgetful(*paths), ["a", "b"], Told())
