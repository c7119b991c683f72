"""Sends flows through the node as it is and as it will be, and says where they end otherwise.

Today is told twice, by the simulator and by iptables-legacy on the real kernel; where these do not agree,
nothing is said of the flow, but that. Then is the real kernel alone, and is held against every way that
the simulator knows today, so that a draw of chance is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from backends.contract import Backend, Job
from backends.flow import Flow, Pause, Send
from backends.outcome import FlowResult, Outcome, Verdict
from backends.simulator import RuleVisited, Simulation, SimulatorBackend, TracedBranch
from harness.assess.ends import End
from harness.assess.facts import Facts
from harness.assess.seen import Measure, Seen, Traced
from harness.compare import Mismatch, compare
from harness.replay import Progress, replay
from translate.ir import Rule

__all__ = ["Trial", "try_flows"]

_NOTHING = Outcome(verdict=Verdict.UNSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What the flows came to: ``sent`` of them, those that differ, and those of which today is disputed.

    ``routed`` are all whose first packet leaves the node today for the destination that it had.
    """

    sent: int
    seen: tuple[Seen, ...]
    routed: tuple[Seen, ...] = ()
    disputed: tuple[str, ...] = ()


def try_flows(
    facts: Facts,
    flows: Sequence[Flow],
    *,
    today: Backend,
    then: Backend,
    measures: dict[str, Measure],
    progress: Progress,
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
    sides = replay([today, then], job, flows, progress=progress)
    for side in sides:
        if side.refusal is not None:
            raise side.refusal
    seen: list[Seen] = []
    routed: list[Seen] = []
    disputed: list[str] = []
    for flow, now, later in zip(flows, sides[0].results, sides[1].results, strict=True):
        if flow.id in measures:
            seen.extend(_measured(facts, flow, measures[flow.id], now, later))
            continue
        wanted = expected[flow.id]
        if wrong := compare(flow, wanted, now):
            said = f"{wrong[0].expected} simulated, {wrong[0].observed} seen"
            disputed.append(f"{flow.id}: {wrong[0].field}: {said}")
            continue
        if mismatches := compare(flow, wanted, later):
            seen.append(_seen(simulation, flow, mismatches, wanted, later))
        first = _first(flow, now, later)
        if first.today_end is End.ROUTED:
            routed.append(first)
    return Trial(sent=len(flows), seen=tuple(seen), routed=tuple(routed), disputed=tuple(disputed))


def _first(flow: Flow, now: FlowResult, later: FlowResult) -> Seen:
    """What became of a flow's first packet, whether it differs or not."""
    return Seen(
        flow=flow,
        step=0,
        packet=flow.first.packet,
        entry=flow.first.entry,
        today=now.branches[0].outcomes[0],
        then=later.branches[0].outcomes[0],
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


def _seen(
    simulation: Simulation,
    flow: Flow,
    mismatches: tuple[Mismatch, ...],
    wanted: FlowResult,
    later: FlowResult,
) -> Seen:
    """The first step that differs from the way of today's that is closest."""
    placed = [m for m in mismatches if m.step is not None and m.branch is not None]
    step = min((m.step for m in placed if m.step is not None), default=0)
    branch = next((m.branch for m in placed if m.branch is not None), 0)
    sent = max(i for i in range(step + 1) if isinstance(flow.steps[i], Send))
    send = flow.steps[sent]
    assert isinstance(send, Send)
    index = _outcome_index(flow, step)
    outcomes = later.branches[0].outcomes
    return Seen(
        flow=flow,
        step=step,
        packet=send.packet,
        entry=send.entry,
        today=wanted.branches[branch].outcomes[index],
        then=outcomes[index] if index < len(outcomes) else _NOTHING,
        tracing=cache(partial(_traced, simulation, flow, wanted.branches[branch].outcomes, sent, step)),
        fields=tuple(dict.fromkeys(m.field for m in mismatches if m.step in (step, None))),
    )


def _outcome_index(flow: Flow, step: int) -> int:
    return sum(not isinstance(one, Pause) for one in flow.steps[:step])


def _traced(
    simulation: Simulation, flow: Flow, outcomes: tuple[Outcome, ...], sent: int, step: int
) -> Traced:
    """The rules on the way that ends so."""
    ways = simulation.trace(flow)
    way = next(w for w in ways if tuple(s.outcome for s in w.steps if s.outcome is not None) == outcomes)
    return Traced(_met(way, step), () if sent == step else _met(way, sent))


def _met(traced: TracedBranch, step: int) -> tuple[Rule, ...]:
    """The rules that applied to a step's packet, jumps too."""
    events = traced.steps[step].events
    return tuple(event.rule for event in events if isinstance(event, RuleVisited) and event.matched)
