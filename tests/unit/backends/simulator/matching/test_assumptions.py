"""Hidden parts of rules: both branches are followed, and each holds for the rules that it assumes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from backends.model.flow import Again, Flow, Pause, Reply
from backends.model.outcome import Assumption, FlowResult, Outcome, Verdict
from backends.simulator import Simulation, trace
from tests.unit.backends.simulator.conftest import Lab
from translate.errors import InputError, UnsupportedError
from translate.ir import Field, FieldTest, Hidden, Interval, Name, Rule, Ruleset, Unknown

HIDES = Unknown("no interfaces", Hidden.TESTS, (Field.IIF, Field.OIF))
NAMED = Unknown("a name", Hidden.TESTS, (Field.SADDR,))


def hidden(ruleset: Ruleset, hide) -> Ruleset:
    """``hide(rule)`` returns the rule with less to it."""
    tables = []
    for table in ruleset.tables:
        chains = tuple(replace(c, rules=tuple(hide(rule) for rule in c.rules)) for c in table.chains)
        tables.append(replace(table, chains=chains))
    return replace(ruleset, tables=tuple(tables))


def without_interfaces(rule: Rule) -> Rule:
    tests = tuple(
        t for t in rule.tests if not (isinstance(t, FieldTest) and t.field in (Field.IIF, Field.OIF))
    )
    return replace(rule, tests=tests, unknown=(HIDES,))


def simulated(lab, rules: str, *steps, hide=without_interfaces) -> FlowResult:
    job = lab.job(rules)
    job = replace(job, rules=hidden(job.ruleset, hide))
    return Simulation(job, assuming=True).simulate(Flow(id="f", steps=steps))


def test_without_assuming_it_is_refused(lab):
    job = lab.job("filter: -A FORWARD -j DROP")
    job = replace(job, rules=hidden(job.ruleset, without_interfaces))
    with pytest.raises(UnsupportedError) as caught:
        Simulation(job)
    assert [(r.feature, r.reason) for r in caught.value.refusals] == [("unknown", "no interfaces")]


def test_both_ways_are_followed_and_say_what_they_assume(lab):
    result = simulated(lab, "filter: -A FORWARD -i west -j DROP", lab.udp("10.1.0.9", "10.2.0.9"))
    drop, forward = result.branches
    line = drop.assuming[0].line
    assert drop.assuming == (
        Assumption(line=line, hidden=("no interfaces",), matches=True, packet="in west out east"),
    )
    assert drop.outcomes[0].verdict is Verdict.DROP
    assert forward.assuming == (replace(drop.assuming[0], matches=False),)
    assert forward.outcomes[0].verdict is Verdict.FORWARD
    assert str(drop.assuming[0]) == f"line {line} matches in west out east — no interfaces"


def test_what_does_not_matter_for_the_packet_is_not_assumed(lab):
    rules = """
        filter: -A FORWARD -d 10.9.0.0/16 -i west -j DROP
        filter: -A FORWARD -i west -j ACCEPT
        filter: -A FORWARD -i east
    """
    (only,) = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9")).branches
    assert not only.assuming
    assert only.probability == 1
    assert only.outcomes[0].verdict is Verdict.FORWARD


def test_the_same_question_has_the_same_answer_in_a_flow(lab):
    rules = "mangle: -A FORWARD -i west -j MARK --set-mark 1\nfilter: -A FORWARD -m mark --mark 1 -j DROP"
    steps = (lab.udp("10.1.0.9", "10.2.0.9"), Again())
    verdicts = {tuple(o.verdict for o in b.outcomes) for b in simulated(lab, rules, *steps).branches}
    assert verdicts == {(Verdict.DROP, Verdict.DROP), (Verdict.FORWARD, Verdict.FORWARD)}


def test_an_answer_that_comes_by_other_interfaces_is_another_question(lab):
    rules = "filter: -A FORWARD -i east -j DROP"
    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"), Reply())
    shown = {tuple(o.verdict for o in b.outcomes): len(b.assuming) for b in result.branches}
    assert shown == {
        (Verdict.DROP, Verdict.UNSENT): 1,
        (Verdict.FORWARD, Verdict.DROP): 2,
        (Verdict.FORWARD, Verdict.FORWARD): 2,
    }


def test_hidden_rules_may_do_anything_or_nothing(lab):
    stands = Rule(tests=(), actions=(), unknown=(Unknown("chain FORWARD is not shown", Hidden.RULES),))
    job = lab.job("filter: -A FORWARD -j DROP")
    job = replace(job, rules=hidden(job.ruleset, lambda _: stands))
    steps = (lab.udp("10.1.0.9", "10.2.0.9"), Pause(seconds=1), Again())
    kept, lost = Simulation(job, assuming=True).simulate(Flow(id="f", steps=steps)).branches
    assert [a.matches for a in kept.assuming] == [False]
    assert [o.verdict for o in kept.outcomes] == [Verdict.FORWARD] * 2
    assert [a.matches for a in lost.assuming] == [True]
    unknown = Outcome(verdict=Verdict.UNKNOWN, hidden="chain FORWARD is not shown")
    assert lost.outcomes == (unknown, unknown)


def test_a_hidden_action_is_an_unknown_end_without_an_assumption(lab):
    def hide(rule: Rule) -> Rule:
        unknown = (Unknown("DNAT goes to a name", Hidden.ACTION),)
        return replace(rule, actions=(), unknown=unknown)

    rules = "nat: -A PREROUTING -p udp --dport 53 -j DNAT --to-destination 10.2.0.9"
    (lost,) = simulated(lab, rules, lab.udp("10.1.0.9", "10.3.0.9"), hide=hide).branches
    assert (lost.assuming, lost.outcomes[0].verdict) == ((), Verdict.UNKNOWN)
    (other,) = simulated(lab, rules, lab.tcp("10.1.0.9", "10.2.0.9"), hide=hide).branches
    assert (other.assuming, other.outcomes[0].verdict) == ((), Verdict.FORWARD)


def test_a_list_is_touched_only_where_the_hidden_test_holds(lab):
    rules = """
        filter: -A FORWARD -i west -m recent --name L --set
        filter: -A FORWARD -m recent --name L --rcheck -j DROP
    """

    def hide(rule: Rule) -> Rule:
        # a rule that does nothing but remember matters, too
        return without_interfaces(rule) if any(isinstance(t, FieldTest) for t in rule.tests) else rule

    result = simulated(lab, rules, lab.udp("10.1.0.9", "10.2.0.9"), hide=hide)
    shown = {b.outcomes[0].verdict: [a.matches for a in b.assuming] for b in result.branches}
    assert shown == {Verdict.DROP: [True], Verdict.FORWARD: [False]}


def test_a_trace_shows_which_hidden_test_is_assumed_to_fail(lab):
    job = lab.job("filter: -A FORWARD -i west -j DROP")
    job = replace(job, rules=hidden(job.ruleset, without_interfaces))
    flow = Flow(id="f", steps=(lab.udp("10.1.0.9", "10.2.0.9"),))
    failed = [
        event.failed
        for branch in trace(job, flow, assuming=True)
        for event in branch.steps[0].events
        if hasattr(event, "failed")
    ]
    assert failed[0] is None
    assert isinstance(failed[1], Assumption)
    assert not failed[1].matches


INTERFACES = st.sampled_from(["", "-i west ", "-i east ", "-o east ", "-i west -o east ", "! -i w+ "])
SOURCES = st.sampled_from(["", "-s 10.1.0.9 ", "! -s 10.1.0.9 ", "-s 10.2.0.0/16 "])
ACTIONS = st.sampled_from(
    [
        "-j DROP",
        "-j ACCEPT",
        "-j RETURN",
        "-j MARK --set-xmark 1/1",
        "-j MARK --set-xmark 2/2",
        "-j A",
        "-g A",
    ]
)
RANDOMS = st.sampled_from(["", "", "-m statistic --mode random --probability 0.5 ", "-m mark --mark 1/1 "])
RULE = st.builds("{}{}{}{}".format, INTERFACES, SOURCES, RANDOMS, ACTIONS)


def holds(assumption: Assumption, rule: Rule) -> bool:
    """Return whether an assumption about a rule is true, given its interfaces and sources."""
    words = assumption.packet.split()
    packet = dict(zip(words[::2], words[1::2], strict=True))
    for test in rule.tests:
        if not isinstance(test, FieldTest) or test.field not in (Field.IIF, Field.OIF, Field.SADDR):
            continue
        if test.field is Field.SADDR:
            a, b, c, d = map(int, packet["from"].split("."))
            found = any(a << 24 | b << 16 | c << 8 | d in v for v in test.values if isinstance(v, Interval))
        else:
            name = packet.get("in" if test.field is Field.IIF else "out", "")
            found = any(isinstance(v, Name) and v.matches(name) for v in test.values)
        if found is test.negated:
            return not assumption.matches
    return assumption.matches


@given(st.lists(RULE, min_size=1, max_size=4), st.lists(RULE, max_size=2))
def test_what_is_said_holds_in_whichever_way_it_is_filled_in(forward, chain):
    """The branches whose assumptions are true of the whole rules have the whole rules' distribution."""
    lab = Lab()
    lines = ["filter: -N A", *(f"filter: -A FORWARD {r}" for r in forward)]
    lines += [f"filter: -A A {r}" for r in chain if not r.endswith(" A")]
    job = lab.job("\n".join(lines))
    rules = {r.origin.line: r for t in job.ruleset.tables for c in t.chains for r in c.rules}

    def hide(rule: Rule) -> Rule:
        less = without_interfaces(rule)
        tests = tuple(t for t in less.tests if not (isinstance(t, FieldTest) and t.field is Field.SADDR))
        return replace(less, tests=tests, unknown=(HIDES, NAMED))

    flow = Flow(id="f", steps=(lab.udp("10.1.0.9", "10.2.0.9"), Reply()))
    whole = {b.outcomes: b.probability for b in Simulation(job).simulate(flow).branches}
    less = replace(job, rules=hidden(job.ruleset, hide))
    found: dict[tuple[Outcome, ...], Fraction] = {}
    try:
        branches = Simulation(less, assuming=True).simulate(flow).branches
    except InputError as e:
        if "branches" not in str(e):
            raise
        reject()  # more than the simulator follows
    for branch in branches:
        if all(holds(a, rules[a.line]) for a in branch.assuming):
            found[branch.outcomes] = found.get(branch.outcomes, Fraction(0)) + branch.probability
    assert found == whole
