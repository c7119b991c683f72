"""Sends flows through the node as it is and as it will be, and says where they end otherwise.

Today is told twice, by the simulator and by iptables-legacy on the real kernel; where these do not agree,
nothing is said of the flow, but that. Then is the real kernel alone, and is held against every way that
the simulator knows today, so that a draw of chance is no difference. Flows that chance decides, on either
side, are run until every way has been seen (:mod:`harness.diff.sampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Pause, Send
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.simulator import RuleVisited, Simulation, SimulatorBackend, TracedBranch
from harness.diff.compare import DifferentWay, Mismatch
from harness.diff.replay import Progress, replay
from harness.diff.sampling import CERTAIN, Sampling
from harness.diff.ways import told_ways
from nfparity.assess.ends import End, end_of
from nfparity.assess.facts import Facts
from nfparity.assess.seen import Measure, Seen, Traced
from translate.ir import Rule

__all__ = ["Disputed", "Trial", "try_flows"]

_NOTHING = Outcome(verdict=Verdict.UNSENT)


@dataclass(frozen=True, slots=True)
class Disputed:
    """A flow of which simulator and kernel do not agree what happens today, and by what."""

    flow_id: str
    told: str

    def __str__(self) -> str:
        return f"{self.flow_id}: {self.told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the flows came to: each way of a flow that differs, and the flows of which today is disputed.

    ``routed`` are all whose first packet leaves the node today for the destination that it had. ``sides``
    are the two sides by name, with how many seconds each flow took there.
    """

    sides: tuple[tuple[str, dict[str, float]], ...]
    seen: tuple[Seen, ...]
    routed: tuple[Seen, ...] = ()
    disputed: tuple[Disputed, ...] = ()


def try_flows(
    facts: Facts,
    flows: Sequence[Flow],
    *,
    today: Backend,
    then: Backend,
    measures: dict[str, Measure],
    progress: Progress,
    sampling: Sampling = CERTAIN,
) -> Trial:
    """Run all flows through both sides.

    ``measures`` are by the id of the flow that they are for. Raises MachineError when the machine fails
    one of them, or does not take its rules.
    """
    job = Job(ruleset=facts.ruleset, node=facts.node)
    simulation = Simulation(job)
    plain = [flow for flow in flows if flow.id not in measures]
    (simulated,) = replay([SimulatorBackend()], job, plain, progress=progress)
    if simulated.refusal is not None:
        raise simulated.refusal
    expected = dict(zip((f.id for f in plain), simulated.results, strict=True))
    sides = replay(
        [today, then],
        job,
        flows,
        progress=progress,
        expected=[expected.get(flow.id) for flow in flows],
        sampling=sampling,
    )
    for side in sides:
        if side.refusal is not None:
            raise side.refusal
    seen: list[Seen] = []
    routed: list[Seen] = []
    disputed: list[Disputed] = []
    results = zip(*(zip(side.results, side.differing, strict=True) for side in sides), strict=True)
    for flow, ((now, wrong), (later, other)) in zip(flows, results, strict=True):
        if flow.id in measures:
            seen.extend(_measured(facts, flow, measures[flow.id], now, later))
            continue
        wanted = expected[flow.id]
        if wrong:
            first_wrong = wrong[0].mismatches[0]
            told = f"{first_wrong.expected} simulated, {first_wrong.observed} seen"
            disputed.append(Disputed(flow.id, f"{first_wrong.field}: {told}"))
            continue
        seen += (_seen(simulation, flow, wanted, way) for way in other)
        if any(end_of(branch.outcomes[0]) is End.ROUTED for branch in now.branches):
            routed.append(_routed(flow, now, later))
    return Trial(
        sides=tuple((side.backend, {r.flow_id: r.seconds for r in side.results}) for side in sides),
        seen=tuple(seen),
        routed=tuple(routed),
        disputed=tuple(disputed),
    )


def _routed(flow: Flow, now: FlowResult, later: FlowResult) -> Seen:
    """What became of a flow's first packet, whether it differs or not; of several ways one that is routed."""
    today, then = (
        [branch.outcomes[0] for branch in told_ways(flow, one.branches, runs=one.runs)]
        for one in (now, later)
    )
    return Seen(
        flow=flow,
        step=0,
        packet=flow.first.packet,
        entry=flow.first.entry,
        today=next((one for one in today if end_of(one) is End.ROUTED), today[0]),
        then=next((one for one in then if end_of(one) is End.ROUTED), then[0]),
    )


def _measured(
    facts: Facts, flow: Flow, measure: Measure, now: FlowResult, later: FlowResult
) -> Iterable[Seen]:
    found = measure(facts, flow, now, later)
    if found is None:
        return
    send = flow.steps[found.step]
    assert isinstance(send, Send)
    yield Seen(
        flow=flow,
        step=found.step,
        packet=send.packet,
        entry=send.entry,
        today=found.today,
        then=found.then,
        fields=("measure",),
        told=found.told,
    )


def _seen(simulation: Simulation, flow: Flow, wanted: FlowResult, different: DifferentWay) -> Seen:
    """What is told of a way that differs: the first step that does, from the closest way of today's."""
    placed = [m for m in different.mismatches if m.step is not None and m.branch is not None]
    step = min((m.step for m in placed if m.step is not None), default=0)
    branch = next((m.branch for m in placed if m.branch is not None), 0)
    sent = max(i for i in range(step + 1) if isinstance(flow.steps[i], Send))
    send = flow.steps[sent]
    assert isinstance(send, Send)
    index = _outcome_index(flow, step)
    outcomes = () if different.way is None else different.way.outcomes
    return Seen(
        flow=flow,
        step=step,
        packet=send.packet,
        entry=send.entry,
        today=wanted.branches[branch].outcomes[index],
        then=outcomes[index] if index < len(outcomes) else _NOTHING,
        instead="" if different.way is not None else _instead(different.mismatches[0]),
        tracing=cache(partial(_traced, simulation, flow, wanted.branches[branch].outcomes, sent, step)),
        fields=tuple(dict.fromkeys(m.field for m in different.mismatches if m.step in (step, None))),
    )


def _instead(mismatch: Mismatch) -> str:
    """What is told of a difference that is no way of its own."""
    if mismatch.field == "way":
        return "never so, however often it is sent"
    return f"{mismatch.field}: {mismatch.observed}"


def _outcome_index(flow: Flow, step: int) -> int:
    return sum(not isinstance(one, Pause) for one in flow.steps[:step])


def _traced(
    simulation: Simulation, flow: Flow, outcomes: tuple[Outcome, ...], sent: int, step: int
) -> Traced:
    """The rules on the way that ends so."""
    ways = simulation.trace(flow, every_rule=False)
    way = next(w for w in ways if tuple(s.outcome for s in w.steps if s.outcome is not None) == outcomes)
    return Traced(_met(way, step), () if sent == step else _met(way, sent))


def _met(traced: TracedBranch, step: int) -> tuple[Rule, ...]:
    """The rules that applied to a step's packet, jumps too."""
    events = traced.steps[step].events
    return tuple(event.rule for event in events if isinstance(event, RuleVisited) and event.matched)
