"""Passages of both modes are compared for each endpoint, and choices of endpoints are not differences."""

from __future__ import annotations

from fractions import Fraction

from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from nfparity.assess.ipvs.passages import Passage, choice_of, differing, passages_of, runs_of

FIRST = (0x0AF40104, 53)
SECOND = (0x0AF40206, 53)


def to(target: tuple[int, int], *, snat: bool = False, ttl: int = 63, sport: int = 41000) -> Outcome:
    return Outcome(
        verdict=Verdict.FORWARD,
        out="eth0",
        src=1,
        dst=target[0],
        sport=sport,
        dport=target[1],
        dnat=True,
        snat=snat,
        ttl=ttl,
    )


DROPPED = Outcome(verdict=Verdict.DROP)
BACK = Outcome(verdict=Verdict.FORWARD, out="eth0", src=2, dst=1, sport=53, dport=41000)


def passages(*outcomes: Outcome) -> dict[tuple[int, int | None] | None, tuple[Passage, ...]]:
    return passages_of([tuple(Passage(outcome) for outcome in outcomes)])


def test_a_run_is_divided_into_connections_without_the_clients_ports() -> None:
    outcomes = (to(FIRST), BACK, to(SECOND, sport=41001), BACK)
    result = FlowResult("a", (OutcomeBranch(Fraction(1), outcomes),))
    (run,) = runs_of(result, answered=True)
    assert [passage.target for passage in run] == [FIRST, SECOND]
    assert run[0].first.sport is None
    assert run[0].answer is not None
    assert (run[0].answer.sport, run[0].answer.dport) == (53, None)


def test_the_same_passages_to_each_endpoint_are_no_difference() -> None:
    both = passages(to(FIRST), to(SECOND))
    assert not list(differing(both, both, reachable=frozenset({FIRST, SECOND})))


def test_an_endpoint_that_the_scheduler_did_not_choose_is_no_difference() -> None:
    before, after = passages(to(FIRST)), passages(to(FIRST), to(SECOND))
    assert not list(differing(before, after, reachable=frozenset({FIRST, SECOND})))


def test_an_endpoint_that_the_service_did_not_have_is_a_difference() -> None:
    before, after = passages(to(FIRST)), passages(to(FIRST), to(SECOND))
    ((mine, other),) = differing(before, after, reachable=frozenset({FIRST}))
    assert (mine.target, other.target) == (FIRST, SECOND)


def test_an_endpoint_that_is_not_reached_any_more_is_a_difference() -> None:
    before, after = passages(to(FIRST), to(SECOND)), passages(to(FIRST))
    ((mine, _),) = differing(before, after, reachable=frozenset({FIRST, SECOND}))
    assert mine.target == SECOND


def test_another_passage_to_an_endpoint_is_a_difference() -> None:
    before, after = passages(to(FIRST)), passages(to(FIRST, snat=True))
    ((mine, other),) = differing(before, after, reachable=frozenset({FIRST}))
    assert (mine.first.snat, other.first.snat) == (False, True)


def test_a_packet_that_is_dropped_instead_is_a_difference() -> None:
    pairs = list(differing(passages(to(FIRST)), passages(DROPPED), reachable=frozenset({FIRST})))
    assert {(mine.target, other.first.verdict) for mine, other in pairs} == {(FIRST, Verdict.DROP)}


def test_choices_are_counted_without_the_names_of_endpoints() -> None:
    assert choice_of((Passage(to(FIRST)), Passage(to(SECOND)))) == (1, 1)
    assert choice_of((Passage(to(SECOND)), Passage(to(SECOND)))) == (2,)
    assert choice_of((Passage(to(SECOND)), Passage(DROPPED))) is None
