"""Assessment of one family of a node: replays flows in both modes and sorts the changed packets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from backends.model.contract import Backend
from backends.model.flow import Flow
from harness.diff.replay import Progress
from harness.diff.sampling import CERTAIN, Sampling
from nfparity.assess.catalogue import Entry, catalogue, entry
from nfparity.assess.detectors import DETECTORS
from nfparity.assess.detectors.clusterips import unassigned_flows
from nfparity.assess.difference import ChangedPacket, Claim, Evidence, Measure
from nfparity.assess.leaks import Leak, leaks
from nfparity.assess.node.facts import Facts
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.replay.replaying import Disputed, Trial, try_flows
from nfparity.assess.static_findings import static_findings
from translate.dataclass import dataclass

__all__ = ["Assessment", "Checked", "Finding", "assess", "detector_flows"]

_UNEXPLAINED: Final = "a difference that is not in the catalogue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One difference for one subject (usually a service), with the packets that show it.

    ``entry`` is None if no entry of the catalogue explains it. A static finding has a ``description`` instead
    of ``examples``. ``counted`` is False if no rule of the dump counts such packets.
    """

    entry: Entry | None
    subject: str
    lines: tuple[Evidence, ...] = ()
    examples: tuple[ChangedPacket, ...] = ()
    description: str = ""
    counted: bool = True

    @property
    def traffic_seen(self) -> int | None:
        """The sum of the counters of the lines; None without counters, or if no line counts such packets."""
        counted = [line.packets for line in self.lines if line.packets is not None]
        return sum(counted) if counted and self.counted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A known difference that did not appear on this node in any of ``flows`` flows."""

    entry: Entry
    flows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The findings for one family of a node.

    ``disputed`` are flows whose outcome before the change differs between simulator and kernel; they are
    excluded from the findings. ``orders`` are the packets whose outcome after the change depends on the order
    in which components register their chains. ``sides`` are the backends by name, with the seconds that each
    flow took.
    """

    facts: Facts
    findings: tuple[Finding, ...] = ()
    unexplained: tuple[Finding, ...] = ()
    leaks: tuple[Leak, ...] = ()
    checked: tuple[Checked, ...] = ()
    flows: int = 0
    disputed: tuple[Disputed, ...] = ()
    orders: tuple[OrderDifference, ...] = ()
    sides: tuple[tuple[str, dict[str, float]], ...] = ()

    @property
    def changes(self) -> bool:
        """True if there is any finding."""
        return bool(self.findings or self.unexplained or self.leaks or self.disputed or self.orders)


def detector_flows(facts: Facts) -> tuple[dict[str, Flow], dict[str, Measure], dict[str, int]]:
    """Return the detectors' flows by id, their measures if any, and the number of flows per difference."""
    flows: dict[str, Flow] = {}
    measures: dict[str, Measure] = {}
    counts: dict[str, int] = {}
    for detector in DETECTORS:
        if not entry(detector.k).holds_at(facts.version):
            continue
        for flow in detector.flows(facts):
            flows[flow.id] = flow
            counts[detector.k] = counts.get(detector.k, 0) + 1
            if detector.measure is not None:
                measures[flow.id] = detector.measure
    if "K07" not in counts:
        flows.update((flow.id, flow) for flow in unassigned_flows(facts, "LEAK"))
    return flows, measures, counts


def _no_orders(flows: Sequence[Flow], trial: Trial) -> tuple[OrderDifference, ...]:
    return ()


def assess(
    facts: Facts,
    *,
    before: Backend,
    after: Backend,
    late: Backend | None = None,
    compare_orders: Callable[[Sequence[Flow], Trial], tuple[OrderDifference, ...]] = _no_orders,
    beside: bool = False,
    corpus: Sequence[Flow] = (),
    only: Iterable[str] = (),
    sampling: Sampling = CERTAIN,
    by_class: bool = False,
    progress: Progress,
) -> Assessment:
    """Replay the detectors' flows and ``corpus`` in both modes, and return the differences.

    ``late`` is ``after`` with the other rules registered after kube-proxy's, or None if there are none.
    ``compare_orders`` replays flows in the other orders of registration. With ``beside``, both modes have
    rules that the simulator does not know.
    ``only`` restricts the flows to those with these ids, or to those of differences with these ids. With
    ``by_class``, only two services of each kind are tested in full (:mod:`nfparity.assess.replay.alike`). A
    difference is reported only if packets show it. Every difference that packets show is reported, by the
    first detector that claims it. Raises MachineError when a backend fails or rejects its rules.
    """
    flows, measures, counts = detector_flows(facts)
    flows.update((flow.id, flow) for flow in corpus if flow.id not in flows)
    wanted = set(only)
    differences = wanted & {known.id for known in catalogue()}
    chosen = [
        flow
        for flow in flows.values()
        if not wanted or flow.id in wanted or flow.id.partition("/")[0] in differences
    ]
    measures = {flow.id: measures[flow.id] for flow in chosen if flow.id in measures}
    afterwards = _late_flows(facts) if late is not None else frozenset()
    try_chosen = partial(
        try_flows,
        facts,
        before=before,
        progress=progress,
        sampling=sampling,
        by_class=by_class,
        beside=beside,
    )
    trial = try_chosen(chosen, after=after, measures=measures)
    trials: tuple[Trial, ...] = (trial,)
    if late is not None and (again := [flow for flow in chosen if flow.id in afterwards]):
        trials += (try_chosen(again, after=late, measures={}),)
    orders = compare_orders(chosen, trial)
    findings: dict[tuple[str, str], Finding] = {}
    unexplained: dict[tuple[int, str], Finding] = {}
    for number, changed in ((n, changed) for n, trial in enumerate(trials) for changed in trial.changed):
        claimed = _claim(facts, changed)
        changed = changed.without_tracing()
        if claimed is None:
            finding = Finding(entry=None, subject=_UNEXPLAINED, examples=(changed,))
            unexplained.setdefault((number, changed.flow.id), finding)
            continue
        entry_, claim = claimed
        key = (entry_.id, claim.subject)
        findings[key] = _added(findings.get(key), entry_, claim, changed)
    for fact in static_findings(facts):
        entry_ = entry(fact.k)
        if entry_.holds_at(facts.version) and (not wanted or entry_.id in wanted):
            findings[fact.k, fact.subject] = Finding(
                entry=entry_, subject=fact.subject, lines=fact.lines, description=fact.description
            )
    shown = {k for k, _ in findings}
    checked = tuple(
        Checked(entry=known_entry, flows=counts[known_entry.id])
        for known_entry in catalogue()
        if known_entry.id in counts and known_entry.id not in shown and not wanted
    )
    return Assessment(
        facts=facts,
        findings=tuple(findings[key] for key in sorted(findings)),
        unexplained=tuple(unexplained.values()),
        leaks=tuple(leaks(facts, trial.routed)),
        checked=checked,
        flows=len(chosen),
        disputed=tuple(dict.fromkeys(flow for each in trials for flow in each.disputed)),
        orders=orders,
        sides=tuple(side for each in trials for side in each.sides),
    )


def _late_flows(facts: Facts) -> frozenset[str]:
    """Return the ids of flows whose outcomes depend on the order of rules that have the same priority."""
    late = [d for d in DETECTORS if d.late and entry(d.k).holds_at(facts.version)]
    return frozenset(flow.id for detector in late for flow in detector.flows(facts))


def _claim(facts: Facts, changed: ChangedPacket) -> tuple[Entry, Claim] | None:
    for detector in DETECTORS:
        entry_ = entry(detector.k)
        if not entry_.holds_at(facts.version) or not entry_.allows(changed.fate_before, changed.fate_after):
            continue
        claim = detector.claims(facts, changed)
        if claim is not None:
            return entry_, claim
    return None


def _added(earlier: Finding | None, entry: Entry, claim: Claim, changed: ChangedPacket) -> Finding:
    lines = {line.origin: line for line in (() if earlier is None else earlier.lines)}
    lines.update((line.origin, line) for line in claim.lines)
    return Finding(
        entry=entry,
        subject=claim.subject,
        lines=tuple(sorted(lines.values(), key=lambda line: line.origin.line)),
        examples=_one_of_each_flow((*(() if earlier is None else earlier.examples), changed)),
        counted=claim.counted,
    )


def _one_of_each_flow(changed: Iterable[ChangedPacket]) -> tuple[ChangedPacket, ...]:
    """Keep the first changed packet of each flow."""
    first: dict[str, ChangedPacket] = {}
    for packet in changed:
        first.setdefault(packet.flow.id, packet)
    return tuple(first.values())
