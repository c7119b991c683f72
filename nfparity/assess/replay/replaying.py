"""Replay of flows in iptables and nftables mode, and comparison of the outcomes.

The outcomes in iptables mode are computed by the simulator and observed with iptables-legacy on the real
kernel; a flow on which these disagree is reported as disputed and not compared further. The outcomes in
nftables mode are observed on the real kernel, and compared with every outcome that the simulator allows, so
that a random choice is not a difference. If the rules leave the outcome of a flow open (a match that is not
modelled), they are compared with the outcomes observed in iptables mode. Flows with random outcomes are run
until every outcome has been seen (:mod:`harness.diff.sampling`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial

from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Pause, Send
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.simulator import Simulation, SimulatorBackend
from harness.diff.compare import DifferentPath, differing_paths
from harness.diff.mismatch import Mismatch
from harness.diff.paths import normal_paths
from harness.diff.replay import Progress, ReplayOptions, Replays, replay
from harness.diff.sampling import CERTAIN, Sampling
from nfparity.assess.difference import ChangedPacket, Measure
from nfparity.assess.fate import Fate, fate_of
from nfparity.assess.node.facts import Facts
from nfparity.assess.replay.alike import FlowClass, Renaming, flow_classes
from nfparity.assess.replay.results import Results, normal_result, renamed_result
from nfparity.assess.replay.spared import Spared, flows_that_share_runs, spared_flows, waiting
from nfparity.assess.replay.tracing import traced
from translate.dataclass import dataclass, field, replace

__all__ = ["Disputed", "Trial", "changed_packet", "try_flows"]

_NOTHING = Outcome(verdict=Verdict.UNSENT)


@dataclass(frozen=True, slots=True)
class Disputed:
    """A flow on which simulator and kernel disagree in iptables mode, with a description."""

    flow_id: str
    description: str

    def __str__(self) -> str:
        return f"{self.flow_id}: {self.description}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The results of the flows: changed packets and disputed flows.

    ``routed`` are the flows whose first packet leaves the node untranslated in iptables mode. ``sides`` are
    the two backends by name, with the seconds that each flow took. ``later`` are the results after the
    change, by id, of the flows that were tested in full and have no measure. ``inferred`` are results of the
    other flows, derived from a flow of the same class; ``spared`` are those of them that were not sent.
    """

    sides: tuple[tuple[str, dict[str, float]], ...]
    changed: tuple[ChangedPacket, ...]
    routed: tuple[ChangedPacket, ...] = ()
    disputed: tuple[Disputed, ...] = ()
    later: Mapping[str, FlowResult] = field(default_factory=dict)
    inferred: Mapping[str, FlowResult] = field(default_factory=dict)
    spared: Mapping[str, Spared] = field(default_factory=dict)


_Results = tuple[FlowResult, FlowResult]
"""The observed results in iptables mode and in nftables mode."""

_Side = tuple[FlowResult, tuple[DifferentPath, ...]]
"""The observed result in one mode, and its differences from the result expected in iptables mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    """The findings of one flow."""

    changed: tuple[ChangedPacket, ...] = ()
    routed: ChangedPacket | None = None
    disputed: Disputed | None = None


@dataclass(frozen=True, slots=True)
class _Judge:
    """A comparison of results of single flows. ``expected`` are the simulator's results, by id.

    With ``beside``, both sides have rules that the simulator does not know, and the kernel is right.
    """

    facts: Facts
    simulation: Simulation
    expected: Mapping[str, FlowResult]
    measures: Mapping[str, Measure]
    sampling: Sampling
    beside: bool = False

    def of(self, flow: Flow, before: _Side, after: _Side) -> _Judged:
        """Judge a flow by its results in both modes."""
        (now, wrong), (later, other) = before, after
        if flow.id in self.measures:
            return _Judged(changed=tuple(_measured(self.facts, flow, self.measures[flow.id], now, later)))
        wanted = self.expected[flow.id]
        if wrong and not self.beside:
            first_wrong = wrong[0].mismatches[0]
            reason = f"{first_wrong.expected} simulated, {first_wrong.observed} observed"
            return _Judged(disputed=Disputed(flow.id, f"{first_wrong.field}: {reason}"))
        if wanted.is_open or wrong:
            # The simulator cannot decide: the outcome on the kernel before the change is expected.
            paths = normal_paths(flow, now.branches, runs=now.runs, expected=wanted)
            wanted = replace(now, branches=paths)
            other = tuple(differing_paths(flow, wanted, later))
        leaves = any(fate_of(branch.outcomes[0]) is Fate.ROUTED for branch in now.branches)
        return _Judged(
            changed=tuple(changed_packet(flow, wanted, path, self.simulation) for path in other),
            routed=_routed(flow, now, later) if leaves else None,
        )

    def by_another(self, flow: Flow, renaming: Renaming, shown: _Results) -> _Judged:
        """Judge a flow by the results of another flow of its class."""
        now, later = (renaming.result(result, flow) for result in shown)
        if flow.id in self.measures:
            return self.of(flow, (now, ()), (later, ()))
        other = self.sampling.differing(flow, self.expected[flow.id], later)
        return self.of(flow, (now, self.wrong(flow, now)), (later, other))

    def certain(self, flow: Flow, shown: _Results) -> bool:
        """Return whether a flow of one packet has one outcome in each mode, in every run."""
        results = (self.expected[flow.id], *shown)
        plain = not self.beside and flow.id not in self.measures and len(flow.steps) == 1
        return plain and all(len(result.branches) == 1 and not result.notes for result in results)

    def renamed(self, flow: Flow, renaming: Renaming, first: _Judged) -> _Judged:
        """Judge a flow by the findings of the first flow of its class, whose outcome is :meth:`certain`."""
        return _Judged(
            changed=tuple(
                replace(
                    renaming.change(changed, flow),
                    tracing=cache(
                        partial(traced, self.simulation, flow, (renaming.outcome(changed.before),), 0, 0)
                    ),
                )
                for changed in first.changed
            ),
            routed=None if first.routed is None else renaming.change(first.routed, flow),
        )

    def wrong(self, flow: Flow, now: FlowResult) -> tuple[DifferentPath, ...]:
        """Return what rules that the simulator does not know change in iptables mode."""
        return self.sampling.differing(flow, self.expected[flow.id], now) if self.beside else ()


def try_flows(
    facts: Facts,
    flows: Sequence[Flow],
    *,
    before: Backend,
    after: Backend,
    measures: dict[str, Measure],
    progress: Progress,
    sampling: Sampling = CERTAIN,
    by_class: bool = False,
    beside: bool = False,
) -> Trial:
    """Run all flows through both backends.

    ``measures`` maps ids of flows to their measure. With ``by_class``, two flows represent all flows to
    services of one kind (:mod:`nfparity.assess.replay.alike`), which the backend ``after`` must treat alike.
    With ``beside``, both backends have rules that the simulator does not know. Raises MachineError when a
    backend fails or rejects its rules.
    """
    job = Job(rules=facts.ruleset, node=facts.node)
    simulation = Simulation(job)
    simulated = [replace(f, steps=f.steps[:1]) if f.id in measures else f for f in flows]
    if not by_class:
        simulated = [flow for flow in flows if flow.id not in measures]
    (reference,) = replay([SimulatorBackend()], job, simulated, ReplayOptions(progress=progress))
    if reference.refusal is not None:
        raise reference.refusal
    expected = dict(zip((f.id for f in simulated), reference.results, strict=True))
    classes = flow_classes(facts, flows, expected) if by_class else ()
    others = {flow_id for group in classes for flow_id, _ in group.others}
    spared = spared_flows(flows, classes, measures)
    sent = [f for f in flows if f.id not in spared and (f.id not in others or f.id not in measures)]
    options = ReplayOptions(
        progress=progress,
        # Rules that the simulator does not know may keep state, which it cannot foresee.
        expected=[
            None
            if flow.id in measures
            else replace(expected[flow.id], lists=True)
            if beside
            else expected[flow.id]
            for flow in sent
        ],
        sampling=sampling,
        once=others,
        tracing={after.name},
    )
    with Replays() as replays:
        known = [f for f in sent if by_class and not beside and f.id not in measures and f.id not in others]
        shared = flows_that_share_runs(known, expected)
        replays.add(before, job, sent, replace(options, briefly=shared.briefly, together=shared.together))
        replays.add(after, job, sent, options)
        sides = tuple(replays.results())
    for side in sides:
        if side.refusal is not None:
            raise side.refusal
    judge = _Judge(facts, simulation, expected, measures, sampling, beside)
    results: dict[str, _Results] = {}
    judged: dict[str, _Judged] = {}
    for flow, now, later in zip(
        sent, *(zip(s.results, s.differing, strict=True) for s in sides), strict=True
    ):
        results[flow.id] = now[0], later[0]
        if flow.id not in others:
            judged[flow.id] = judge.of(flow, now, later)
    by_id = {flow.id: flow for flow in flows}
    uncertain = {id_ for group in classes for id_ in _infer(group, by_id, judge, results, judged)}
    uncertain |= waiting(spared, uncertain)
    judged.update(dict.fromkeys(uncertain, _Judged()))
    doubtful = [flow for flow in flows if flow.id in uncertain]
    inferred = Results(
        {
            flow_id: partial(
                renamed_result, renaming, by_id[group.first], results[group.first][1], by_id[flow_id]
            )
            for group in classes
            if group.first not in measures
            for flow_id, renaming in group.others
            if flow_id not in uncertain
        }
    )
    trial = Trial(
        sides=tuple((side.backend, _seconds(flows, side.results)) for side in sides),
        changed=tuple(changed for flow in flows for changed in judged[flow.id].changed),
        routed=tuple(packet for flow in flows if (packet := judged[flow.id].routed) is not None),
        disputed=tuple(d for flow in flows if (d := judged[flow.id].disputed) is not None),
        later=Results(
            {
                flow.id: partial(normal_result, flow, results[flow.id][1])
                for flow in sent
                if flow.id not in others and flow.id not in measures
            }
        ),
        inferred=inferred,
        spared={id_: instead for id_, instead in spared.items() if id_ in inferred},
    )
    if not doubtful:
        return trial
    again = try_flows(
        facts,
        doubtful,
        before=before,
        after=after,
        measures={flow.id: measures[flow.id] for flow in doubtful if flow.id in measures},
        progress=progress,
        sampling=sampling,
        beside=beside,
    )
    order = {flow.id: number for number, flow in enumerate(flows)}
    return Trial(
        sides=trial.sides,
        changed=tuple(sorted((*trial.changed, *again.changed), key=lambda packet: order[packet.flow.id])),
        routed=tuple(sorted((*trial.routed, *again.routed), key=lambda packet: order[packet.flow.id])),
        disputed=tuple(sorted((*trial.disputed, *again.disputed), key=lambda flow: order[flow.flow_id])),
        later={**trial.later, **again.later},
        inferred=inferred,
        spared=trial.spared,
    )


def _infer(
    group: FlowClass,
    flows: Mapping[str, Flow],
    judge: _Judge,
    results: Mapping[str, _Results],
    judged: dict[str, _Judged],
) -> list[str]:
    """Judge the other flows of a class by its first flow, and return those that must be tested in full."""
    shown, doubtful = results[group.first], []
    sure = judge.by_another(flows[group.last], group.last_renaming, shown) == judged[group.last]
    sure = sure and judged[group.first].disputed is None
    # A renaming changes neither verdicts nor which outcomes are equal, so these hold for the whole class.
    same = group.first not in judge.measures and judged[group.first] == _Judged()
    measured = group.first in judge.measures
    first = flows[group.first]
    certain = not measured and judge.certain(first, shown)
    now, later = shown if measured else (normal_result(first, result) for result in shown)
    # Beside rules that the simulator does not know, the kernel is right.
    wrong = not measured and bool(judge.wrong(first, shown[0]))
    for flow_id, renaming in group.others:
        flow = flows[flow_id]
        if sure and (
            flow_id not in results
            or _agrees(
                flow,
                results[flow_id],
                renaming.result(now, flow) if wrong else judge.expected[flow_id],
                renaming.result(later, flow),
            )
        ):
            if same:
                judged[flow_id] = _Judged()
            elif certain:
                judged[flow_id] = judge.renamed(flow, renaming, judged[group.first])
            else:
                judged[flow_id] = judge.by_another(flow, renaming, shown)
        else:
            doubtful.append(flow_id)
    return doubtful


def _seconds(flows: Sequence[Flow], results: Iterable[FlowResult]) -> dict[str, float]:
    """Return the seconds that each flow took, in the order of the flows; 0 if it was not sent."""
    taken = {result.flow_id: result.seconds for result in results}
    return {flow.id: taken.get(flow.id, 0.0) for flow in flows}


def _agrees(flow: Flow, own: _Results, before: FlowResult, after: FlowResult) -> bool:
    """Return whether the single run of a flow in each mode agrees with the paths that it may take."""
    now, later = own
    return not any(differing_paths(flow, before, now)) and not any(differing_paths(flow, after, later))


def _routed(flow: Flow, now: FlowResult, later: FlowResult) -> ChangedPacket:
    """Return the first packet of a flow in both modes, with a routed outcome if there are several."""
    before, after = (
        [branch.outcomes[0] for branch in normal_paths(flow, result.branches, runs=result.runs)]
        for result in (now, later)
    )
    return ChangedPacket(
        flow=flow,
        step=0,
        packet=flow.first.packet,
        entry=flow.first.entry,
        before=next((outcome for outcome in before if fate_of(outcome) is Fate.ROUTED), before[0]),
        after=next((outcome for outcome in after if fate_of(outcome) is Fate.ROUTED), after[0]),
    )


def _measured(
    facts: Facts, flow: Flow, measure: Measure, now: FlowResult, later: FlowResult
) -> Iterable[ChangedPacket]:
    measured = measure(facts, flow, now, later)
    if measured is None:
        return
    send = flow.steps[measured.step]
    assert isinstance(send, Send)
    yield ChangedPacket(
        flow=flow,
        step=measured.step,
        packet=send.packet,
        entry=send.entry,
        before=measured.before,
        after=measured.after,
        fields=("measure",),
        description=measured.description,
    )


def changed_packet(
    flow: Flow, wanted: FlowResult, different: DifferentPath, simulation: Simulation | None = None
) -> ChangedPacket:
    """Return the first step that differs from the closest expected outcome.

    ``simulation`` traces the packet, if ``wanted`` is what the simulator computes.
    """
    placed = [m for m in different.mismatches if m.step is not None and m.branch is not None]
    step = min((m.step for m in placed if m.step is not None), default=0)
    branch = next((m.branch for m in placed if m.branch is not None), 0)
    sent = max(i for i in range(step + 1) if isinstance(flow.steps[i], Send))
    send = flow.steps[sent]
    assert isinstance(send, Send)
    index = _outcome_index(flow, step)
    outcomes = () if different.path is None else different.path.outcomes
    path = wanted.branches[branch].outcomes
    return ChangedPacket(
        flow=flow,
        step=step,
        packet=send.packet,
        entry=send.entry,
        before=path[index],
        after=outcomes[index] if index < len(outcomes) else _NOTHING,
        instead="" if different.path is not None else _instead(different.mismatches[0]),
        tracing=None if simulation is None else cache(partial(traced, simulation, flow, path, sent, step)),
        fields=tuple(dict.fromkeys(m.field for m in different.mismatches if m.step in (step, None))),
    )


def _instead(mismatch: Mismatch) -> str:
    """Return the description of a difference without an observed outcome."""
    if mismatch.field == "path":
        return "never observed in any run"
    return f"{mismatch.field}: {mismatch.observed}"


def _outcome_index(flow: Flow, step: int) -> int:
    return sum(not isinstance(earlier, Pause) for earlier in flow.steps[:step])
