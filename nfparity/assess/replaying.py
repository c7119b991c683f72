"""Replay of flows in iptables and nftables mode, and comparison of the outcomes.

The outcomes in iptables mode are computed by the simulator and observed with iptables-legacy on the real
kernel; a flow on which these disagree is reported as disputed and not compared further. The outcomes in
nftables mode are observed on the real kernel, and compared with every outcome that the simulator allows, so
that a random choice is no difference; where rules leave open what becomes of a flow (a match that is not
modelled), with what was observed in iptables mode. Flows with random outcomes are run until every outcome has
been seen (:mod:`harness.diff.sampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Pause, Send
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.simulator import RuleVisited, Simulation, SimulatorBackend, TracedBranch
from harness.diff.compare import DifferentPath, Mismatch, differing_paths
from harness.diff.paths import normal_paths
from harness.diff.replay import Progress, replay
from harness.diff.sampling import CERTAIN, Sampling
from nfparity.assess.difference import ChangedPacket, Measure, Traced
from nfparity.assess.facts import Facts
from nfparity.assess.fate import Fate, fate_of
from translate.ir import Rule

__all__ = ["Disputed", "Trial", "try_flows"]

_NOTHING = Outcome(verdict=Verdict.UNSENT)


@dataclass(frozen=True, slots=True)
class Disputed:
    """A flow on which simulator and kernel disagree in iptables mode, with the disagreement in words."""

    flow_id: str
    told: str

    def __str__(self) -> str:
        return f"{self.flow_id}: {self.told}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The results of the flows: changed packets and disputed flows.

    ``routed`` are the flows whose first packet leaves the node untranslated in iptables mode. ``sides``
    are the two backends by name, with the seconds that each flow took.
    """

    sides: tuple[tuple[str, dict[str, float]], ...]
    changed: tuple[ChangedPacket, ...]
    routed: tuple[ChangedPacket, ...] = ()
    disputed: tuple[Disputed, ...] = ()


def try_flows(
    facts: Facts,
    flows: Sequence[Flow],
    *,
    before: Backend,
    after: Backend,
    measures: dict[str, Measure],
    progress: Progress,
    sampling: Sampling = CERTAIN,
) -> Trial:
    """Run all flows through both backends.

    ``measures`` maps ids of flows to their measure. Raises MachineError when a backend fails or rejects
    its rules.
    """
    job = Job(rules=facts.ruleset, node=facts.node)
    simulation = Simulation(job)
    plain = [flow for flow in flows if flow.id not in measures]
    (simulated,) = replay([SimulatorBackend()], job, plain, progress=progress)
    if simulated.refusal is not None:
        raise simulated.refusal
    expected = dict(zip((f.id for f in plain), simulated.results, strict=True))
    sides = replay(
        [before, after],
        job,
        flows,
        progress=progress,
        expected=[expected.get(flow.id) for flow in flows],
        sampling=sampling,
    )
    for side in sides:
        if side.refusal is not None:
            raise side.refusal
    changed: list[ChangedPacket] = []
    routed: list[ChangedPacket] = []
    disputed: list[Disputed] = []
    results = zip(*(zip(side.results, side.differing, strict=True) for side in sides), strict=True)
    for flow, ((now, wrong), (later, other)) in zip(flows, results, strict=True):
        if flow.id in measures:
            changed.extend(_measured(facts, flow, measures[flow.id], now, later))
            continue
        wanted = expected[flow.id]
        if wrong:
            first_wrong = wrong[0].mismatches[0]
            told = f"{first_wrong.expected} simulated, {first_wrong.observed} observed"
            disputed.append(Disputed(flow.id, f"{first_wrong.field}: {told}"))
            continue
        if wanted.is_open:
            # The rules do not say it, but the kernel has: what it did in iptables mode is expected.
            ways = normal_paths(flow, now.branches, runs=now.runs, expected=wanted)
            wanted = replace(now, branches=ways)
            other = tuple(differing_paths(flow, wanted, later))
        changed += (_changed(simulation, flow, wanted, way) for way in other)
        if any(fate_of(branch.outcomes[0]) is Fate.ROUTED for branch in now.branches):
            routed.append(_routed(flow, now, later))
    return Trial(
        sides=tuple((side.backend, {r.flow_id: r.seconds for r in side.results}) for side in sides),
        changed=tuple(changed),
        routed=tuple(routed),
        disputed=tuple(disputed),
    )


def _routed(flow: Flow, now: FlowResult, later: FlowResult) -> ChangedPacket:
    """The first packet of a flow in both modes, changed or not; of several outcomes a routed one."""
    before, after = (
        [branch.outcomes[0] for branch in normal_paths(flow, one.branches, runs=one.runs)]
        for one in (now, later)
    )
    return ChangedPacket(
        flow=flow,
        step=0,
        packet=flow.first.packet,
        entry=flow.first.entry,
        before=next((one for one in before if fate_of(one) is Fate.ROUTED), before[0]),
        after=next((one for one in after if fate_of(one) is Fate.ROUTED), after[0]),
    )


def _measured(
    facts: Facts, flow: Flow, measure: Measure, now: FlowResult, later: FlowResult
) -> Iterable[ChangedPacket]:
    found = measure(facts, flow, now, later)
    if found is None:
        return
    send = flow.steps[found.step]
    assert isinstance(send, Send)
    yield ChangedPacket(
        flow=flow,
        step=found.step,
        packet=send.packet,
        entry=send.entry,
        before=found.before,
        after=found.after,
        fields=("measure",),
        told=found.told,
    )


def _changed(
    simulation: Simulation, flow: Flow, wanted: FlowResult, different: DifferentPath
) -> ChangedPacket:
    """The first step of an outcome that differs from the closest outcome of iptables mode."""
    placed = [m for m in different.mismatches if m.step is not None and m.branch is not None]
    step = min((m.step for m in placed if m.step is not None), default=0)
    branch = next((m.branch for m in placed if m.branch is not None), 0)
    sent = max(i for i in range(step + 1) if isinstance(flow.steps[i], Send))
    send = flow.steps[sent]
    assert isinstance(send, Send)
    index = _outcome_index(flow, step)
    outcomes = () if different.path is None else different.path.outcomes
    return ChangedPacket(
        flow=flow,
        step=step,
        packet=send.packet,
        entry=send.entry,
        before=wanted.branches[branch].outcomes[index],
        after=outcomes[index] if index < len(outcomes) else _NOTHING,
        instead="" if different.path is not None else _instead(different.mismatches[0]),
        tracing=cache(partial(_traced, simulation, flow, wanted.branches[branch].outcomes, sent, step)),
        fields=tuple(dict.fromkeys(m.field for m in different.mismatches if m.step in (step, None))),
    )


def _instead(mismatch: Mismatch) -> str:
    """The description of a difference that has no outcome."""
    if mismatch.field == "path":
        return "never observed, however often it is sent"
    return f"{mismatch.field}: {mismatch.observed}"


def _outcome_index(flow: Flow, step: int) -> int:
    return sum(not isinstance(one, Pause) for one in flow.steps[:step])


def _traced(
    simulation: Simulation, flow: Flow, outcomes: tuple[Outcome, ...], sent: int, step: int
) -> Traced:
    """The rules on the path with these outcomes."""
    ways = simulation.trace(flow, every_rule=False)
    way = next(w for w in ways if tuple(s.outcome for s in w.steps if s.outcome is not None) == outcomes)
    return Traced(_met(way, step), () if sent == step else _met(way, sent))


def _met(traced: TracedBranch, step: int) -> tuple[Rule, ...]:
    """The rules that applied to a step's packet, including jumps."""
    events = traced.steps[step].events
    return tuple(event.rule for event in events if isinstance(event, RuleVisited) and event.matched)
