"""Repeated runs of a flow: their shares, notes and processors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import cycle

import pytest

from backends.model.flow import Flow, Repeated, Reply, Send
from tests.unit.backends.replay.helpers.fakenode import UDP, Forgetful, Node, out, replay_all

THRICE = Flow(id="f", steps=(Send(packet=UDP, entry="a"),))


def test_a_repeated_flow_comes_to_every_way_that_it_went_with_its_share() -> None:
    ways = cycle(("b", "b", "c"))
    node = Node(lambda p: [out(p, next(ways))])
    (result,) = replay_all(node, [Repeated(THRICE, 6)])
    shares = {branch.outcomes[0].out: branch.probability for branch in result.branches}
    assert shares == {"b": Fraction(2, 3), "c": Fraction(1, 3)}
    assert (result.runs, len(node.sent)) == (6, 6)
    assert len({(p.src, p.sport, p.payload) for p in node.sent}) == 1, "the same packet each time"


def test_nothing_of_a_run_is_left_for_the_next_one() -> None:
    loader = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5)], loader)
    assert (loader.forgotten, loader.times, loader.emptied) == ([10] * 4, 4, 4)
    single = Forgetful(single=True)
    both = Repeated(Flow(id="f", steps=(*THRICE.steps, Reply())), 3)
    replay_all(Node(lambda p: [out(replace(p, dport=21) if p.src == 1 else p, "a")]), [both], single)
    assert (single.forgotten, single.times) == ([10, 21] * 2, 0), "every packet's own connection alone"
    careless = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5, lists=False)], careless)
    assert (careless.times, careless.emptied) == (4, 0), "the reference says that nothing is in a list"


@pytest.mark.parametrize(("fills", "watched", "emptied"), [(True, 5, 4), (False, 1, 0)])
def test_the_first_run_is_watched_and_tells_of_lists(*, fills: bool, watched: int, emptied: int) -> None:
    """The other runs are watched if their lists have to be emptied."""
    loader = Forgetful(lists=True)
    loader.watches, loader.fills = True, fills
    (result,) = replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5, lists=False)], loader)
    assert (loader.looked, loader.emptied) == (watched, emptied)
    assert (result.rarest, result.lists) == (Fraction(1, 3), fills)


def test_a_flow_of_which_only_the_outcomes_count_is_not_watched() -> None:
    loader = Forgetful(lists=True)
    loader.watches = True
    (result,) = replay_all(
        Node(lambda p: [out(p)]), [Repeated(THRICE, 1, lists=False, watched=False)], loader
    )
    assert (loader.looked, result.rarest, result.lists) == (0, Fraction(1), False)


def test_notes_of_all_runs_are_told_once() -> None:
    (result,) = replay_all(Node(lambda p: [out(p, mark=None)]), [Repeated(THRICE, 3)])
    assert result.notes == ("step 1: no mark seen on b",)


def test_more_runs_of_a_flow_are_joined_to_those_before() -> None:
    (first,) = replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 3)])
    (more,) = replay_all(Node(lambda p: [out(p, "c")]), [Repeated(THRICE, 1)])
    joined = first.joined(more)
    assert joined.runs == 4
    assert replace(first, settled=True).joined(replace(more, settled=True)).settled
    assert not replace(first, settled=True).joined(more).settled, "one of them met a random choice"
    assert [branch.probability for branch in joined.branches] == [Fraction(3, 4), Fraction(1, 4)]


def test_only_the_lists_that_the_reference_names_are_emptied() -> None:
    loader = Forgetful(lists=True)
    named = frozenset({"web"})
    requests = [
        Repeated(THRICE, 2, filled=named),
        Repeated(THRICE, 1, lists=False),
        Repeated(THRICE, 1),
        Repeated(THRICE, 1, lists=False),
    ]
    replay_all(Node(lambda p: [out(p)]), requests, loader)
    assert loader.names == [named, named, None]


def test_what_a_watched_run_fills_is_not_named() -> None:
    loader = Forgetful(lists=True)
    loader.watches = True
    replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 2, filled=frozenset({"web"}))] * 2, loader)
    assert loader.names == [None] * 3
