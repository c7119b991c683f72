"""Matches and targets that are not modelled: both ways are followed where they may move a packet."""

from __future__ import annotations

from backends.model.flow import Again, Flow
from backends.model.outcome import FlowResult, Verdict
from backends.simulator import Simulation
from tests.unit.backends.simulator.conftest import Lab


def simulated(lab: Lab, rules: str, *steps) -> FlowResult:
    return Simulation(lab.job(rules)).simulate(Flow(id="f", steps=steps))


def verdicts(result: FlowResult) -> set[tuple[Verdict, ...]]:
    return {tuple(outcome.verdict for outcome in branch.outcomes) for branch in result.branches}


def test_a_log_and_an_effect_leave_nothing_open(lab: Lab) -> None:
    rules = 'mangle: -A FORWARD -m osf --genre Linux -j LOG\nmangle: -A FORWARD -j LED --led-trigger-id "x"'
    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"))
    assert (verdicts(result), result.is_open) == ({(Verdict.FORWARD,)}, False)


def test_a_match_may_answer_anew_for_each_packet(lab: Lab) -> None:
    rules = "filter: -A FORWARD -m osf --genre Linux -j ACCEPT\nfilter: -A FORWARD -j DROP"
    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"), Again())
    both = (Verdict.FORWARD, Verdict.DROP)
    assert verdicts(result) == {(one, other) for one in both for other in both}
    assert result.is_open


def test_the_sender_of_a_flow_stays_the_same(lab: Lab) -> None:
    rules = "filter: -A FORWARD -m devgroup --src-group uplinks -j DROP"
    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"), Again())
    assert verdicts(result) == {(Verdict.FORWARD,) * 2, (Verdict.DROP,) * 2}


def test_no_question_is_asked_of_packets_that_the_modelled_tests_exclude(lab: Lab) -> None:
    rules = "filter: -A FORWARD -s 10.9.0.0/16 -m osf --genre Linux -j DROP"
    assert not simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9")).is_open


def test_behind_a_target_that_may_do_anything_all_is_unknown(lab: Lab) -> None:
    result = simulated(
        lab,
        "mangle: -A FORWARD -j CLUSTERIP --new --hashmode sourceip",
        lab.udp("10.1.0.9", "10.2.0.9"),
    )
    assert verdicts(result) == {(Verdict.UNKNOWN,)}
    assert "-j CLUSTERIP is not modelled" in str(result.branches[0].outcomes[0].hidden)


def test_many_answers_end_in_the_unknown_instead_of_in_too_many_ways(lab: Lab) -> None:
    rules = "filter: -A FORWARD -m osf --genre Linux -j DROP\n" * 30
    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"), *[Again()] * 8)
    assert len(result.branches) < 300
    assert any(Verdict.UNKNOWN in one for one in verdicts(result))
