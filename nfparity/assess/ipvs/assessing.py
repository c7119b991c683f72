"""Assessment of one family of a node in ipvs mode: probes on ip_vs and in nftables mode, compared."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from backends.ipvs.backend import without_device
from backends.model.contract import Backend, Job
from backends.model.flow import Flow, Repeated
from backends.model.ipvs import IpvsTable
from backends.model.outcome import FlowResult, Outcome
from harness.diff.replay import Progress
from nfparity.assess.assessing import Assessment, Checked, Finding
from nfparity.assess.catalogue import ipvs_catalogue
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.ipvs.differences import claimed_by, entries_of
from nfparity.assess.ipvs.passages import Passage, choice_of, differing, passages_of, runs_of
from nfparity.assess.ipvs.prediction import Prediction, Predictor
from nfparity.assess.ipvs.probes import Kind, Probe, probes_of
from nfparity.assess.node.facts import Facts
from nfparity.assess.replay.replaying import Disputed
from translate.dataclass import replace

__all__ = ["assess_ipvs", "most_endpoints"]

_UNEXPLAINED: Final = "a difference that is not in the catalogue"
_FEWEST_RUNS: Final = 4
"""The least number of runs of a flow that chooses at random."""


def assess_ipvs(
    facts: Facts,
    table: IpvsTable,
    *,
    before: Backend,
    after: Backend,
    only: Iterable[str] = (),
    miss: float,
    progress: Progress,
) -> Assessment:
    """Run the probes in both modes, and return the differences and the outcomes that were not predicted.

    ``facts`` and ``table`` are of one family. ``miss`` is the accepted chance, per flow, of not seeing an
    endpoint in nftables mode. Raises MachineError when a backend fails or rejects its rules.
    """
    wanted = set(only)
    known = {entry.id for entry in ipvs_catalogue()} & wanted
    every = tuple(probes_of(facts, table))
    endpoints = most_endpoints(every)
    probes = [
        probe for probe in every if not wanted or probe.flow.id in wanted or known & set(entries_of(probe))
    ]
    job = Job(rules=facts.ruleset, node=facts.node)
    predictor = Predictor(facts)
    predictions = [predictor.of(probe) for probe in probes]
    now = _replayed(before, job, [probe.flow for probe in probes], progress)
    later_job = replace(job, node=without_device(facts.node))
    later = _replayed(after, later_job, [_repeated(p, endpoints[p.subject], miss) for p in probes], progress)
    findings: dict[tuple[str, str], Finding] = {}
    unexplained: list[Finding] = []
    disputed: list[Disputed] = []
    for probe, prediction, mine, other in zip(probes, predictions, now, later, strict=True):
        fault = _unpredicted(probe, prediction, mine)
        if fault is not None:
            disputed.append(Disputed(probe.flow.id, fault))
            continue
        for changed in _changed(probe, prediction, mine, other):
            claimed = claimed_by(facts, probe, changed)
            if claimed is None:
                unexplained.append(Finding(entry=None, subject=_UNEXPLAINED, examples=(changed,)))
                continue
            key = (claimed.id, probe.subject)
            earlier = () if key not in findings else findings[key].examples
            if all(example.flow.id != probe.flow.id for example in earlier):
                findings[key] = Finding(
                    entry=claimed, subject=probe.subject, examples=(*earlier, changed), counted=False
                )
    shown = {id_ for id_, _ in findings}
    return Assessment(
        facts=facts,
        findings=tuple(findings[key] for key in sorted(findings)),
        unexplained=tuple(unexplained),
        checked=() if wanted else tuple(_checked(probes, shown)),
        flows=len(probes),
        disputed=tuple(disputed),
        sides=(
            (before.name, {result.flow_id: result.seconds for result in now}),
            (after.name, {result.flow_id: result.seconds for result in later}),
        ),
    )


def most_endpoints(probes: Iterable[Probe]) -> dict[str, int]:
    """Return for each subject of probes the most servers that any of its virtual services has."""
    most: dict[str, int] = {}
    for probe in probes:
        servers = 0 if probe.virtual is None else len(probe.virtual.servers)
        most[probe.subject] = max(servers, most.get(probe.subject, 0))
    return most


def _replayed(
    backend: Backend, job: Job, flows: Sequence[Flow | Repeated], progress: Progress
) -> list[FlowResult]:
    results = []
    with backend.open(job) as session:
        for result in session.replay(flows):
            results.append(result)
            progress(backend.name, len(results), len(flows))
    return results


def _repeated(probe: Probe, endpoints: int, miss: float) -> Repeated:
    """Return the flow, repeated until random choices took every endpoint, but for the chance ``miss``.

    ``endpoints`` are those of the service at any of its addresses: nftables mode sends pods to all of them,
    also where ip_vs has only those of the node (policy Local).
    """
    if endpoints < 2:
        return Repeated(probe.flow, 1)
    # With affinity, all connections of a run choose once.
    draws = math.log(miss / endpoints) / math.log(1 - 1 / endpoints)
    connections = 1 if probe.virtual is not None and probe.virtual.persistent else probe.connections
    return Repeated(probe.flow, max(_FEWEST_RUNS, math.ceil(draws / connections)))


def _runs(probe: Probe, result: FlowResult) -> tuple[tuple[Passage, ...], ...]:
    return tuple(runs_of(result, answered=probe.kind is Kind.SERVICE))


def _unpredicted(probe: Probe, prediction: Prediction, result: FlowResult) -> str | None:
    """Return a difference between prediction and kernel, and notes of the backend."""
    if result.notes:
        return result.notes[0]
    faults = (prediction.fault(run) for run in _runs(probe, result))
    return next((fault for fault in faults if fault is not None), None)


def _changed(
    probe: Probe, prediction: Prediction, now: FlowResult, later: FlowResult
) -> Iterator[ChangedPacket]:
    before, after = _runs(probe, now), _runs(probe, later)
    pairs = differing(passages_of(before), passages_of(after), reachable=prediction.targets)
    for mine, other in pairs:
        if mine.first != other.first:
            yield _packet(probe, mine, other, step=0)
        else:
            yield _packet(probe, mine, other, step=1)
    description = _scheduling(before, after)
    if description:
        changed = _packet(probe, before[0][0], after[0][0], step=0)
        yield replace(changed, fields=("measure",), description=description)


def _packet(probe: Probe, mine: Passage, other: Passage, *, step: int) -> ChangedPacket:
    first, second = (mine.first, other.first) if step == 0 else (mine.answer, other.answer)
    assert first is not None
    assert second is not None
    names = [name for name in _FIELDS if getattr(first, name) != getattr(second, name)]
    return ChangedPacket(
        flow=probe.flow,
        step=step,
        packet=probe.flow.first.packet,
        entry=probe.flow.first.entry,
        before=first,
        after=second,
        fields=tuple(names),
        description=_details(first, second) if set(names) <= {"ttl", "mark"} else "",
    )


def _details(before: Outcome, after: Outcome) -> str:
    """Return the values of fields that reports of a packet's path do not have."""
    values = (
        ("TTL", str(before.ttl), str(after.ttl)),
        ("mark", f"{before.mark or 0:#x}", f"{after.mark or 0:#x}"),
    )
    return "; ".join(f"{name} {old}, afterwards {new}" for name, old, new in values if old != new)


_FIELDS: Final = (
    *(
        "verdict",
        "reject_with",
        "out",
        "src",
        "dst",
        "sport",
        "dport",
        "ttl",
        "tos",
        "dnat",
        "snat",
        "mark",
        "mss",
    ),
)


def _scheduling(before: tuple[tuple[Passage, ...], ...], after: tuple[tuple[Passage, ...], ...]) -> str:
    """Return the difference between the choices of endpoints in words; empty if there is none."""
    mine = {choice for run in before if (choice := choice_of(run)) is not None}
    other = {choice for run in after if (choice := choice_of(run)) is not None}
    if len(mine) != 1 or not other or mine == other:
        return ""
    (choice,) = mine
    count = sum(choice)
    if len(choice) == 1:
        was = f"all {count} connections of a client go to one endpoint"
    elif max(choice) == 1:
        was = f"{count} connections of a client go to {len(choice)} endpoints in turn"
    else:
        was = f"{count} connections are spread as {'+'.join(map(str, choice))}"
    spreads = ", ".join("+".join(map(str, spread)) for spread in sorted(other, reverse=True)[:3])
    return f"{was}; afterwards at random ({spreads})"


def _checked(probes: Sequence[Probe], shown: set[str]) -> Iterator[Checked]:
    for known in ipvs_catalogue():
        count = sum(known.id in entries_of(probe) for probe in probes)
        if count and known.id not in shown:
            yield Checked(entry=known, flows=count)
