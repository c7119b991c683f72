"""What will change on a node: witnesses for every known difference, and a corpus for those not known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from backends.model.contract import Backend
from backends.model.flow import Flow
from harness.diff.replay import Progress
from harness.diff.sampling import CERTAIN, Sampling
from nfparity.assess.catalogue import Entry, catalogue, entry
from nfparity.assess.detectors import DETECTORS
from nfparity.assess.detectors.clusterips import unassigned_flows
from nfparity.assess.facts import Facts
from nfparity.assess.leaks import Leak, leaks
from nfparity.assess.replaying import Disputed, Trial, try_flows
from nfparity.assess.seen import Claim, Evidence, Measure, Seen
from nfparity.assess.stated import stated

__all__ = ["Assessment", "Checked", "Finding", "assess", "witnesses"]

_UNEXPLAINED: Final = "a difference that no known one explains"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that will change for one subject, with the packets that show it.

    ``entry`` None: a difference that nothing in the catalogue explains. ``seen`` is empty where the
    snapshot says it without a packet; ``told`` says it then. With ``counted`` False no rule of the dump
    counts such packets.
    """

    entry: Entry | None
    subject: str
    lines: tuple[Evidence, ...] = ()
    seen: tuple[Seen, ...] = ()
    told: str = ""
    counted: bool = True

    @property
    def in_use(self) -> int | None:
        """How many packets the lines have counted; None without counters, or where no line counts them."""
        counted = [line.packets for line in self.lines if line.packets is not None]
        return sum(counted) if counted and self.counted else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A difference that the node might have had: so many witnesses were sent, and none showed it."""

    entry: Entry
    witnesses: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """All that was found of one family of a node.

    ``disputed`` are flows of which simulator and kernel do not agree what happens today: of them nothing
    else is said. ``sides`` are the sides by name, with how many seconds each flow took there.
    """

    facts: Facts
    findings: tuple[Finding, ...] = ()
    unexplained: tuple[Finding, ...] = ()
    leaks: tuple[Leak, ...] = ()
    checked: tuple[Checked, ...] = ()
    flows: int = 0
    disputed: tuple[Disputed, ...] = ()
    sides: tuple[tuple[str, dict[str, float]], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.findings or self.unexplained or self.leaks or self.disputed)


def witnesses(facts: Facts) -> tuple[dict[str, Flow], dict[str, Measure], dict[str, int]]:
    """Return the witnesses by id, the measures of those that need one, and how many each difference has."""
    flows: dict[str, Flow] = {}
    measures: dict[str, Measure] = {}
    counts: dict[str, int] = {}
    for detector in DETECTORS:
        if not entry(detector.k).holds_at(facts.version):
            continue
        for flow in detector.witnesses(facts):
            flows[flow.id] = flow
            counts[detector.k] = counts.get(detector.k, 0) + 1
            if detector.measure is not None:
                measures[flow.id] = detector.measure
    if "K07" not in counts:
        flows.update((flow.id, flow) for flow in unassigned_flows(facts, "LEAK"))
    return flows, measures, counts


def assess(
    facts: Facts,
    *,
    today: Backend,
    then: Backend,
    late: Backend | None = None,
    corpus: Sequence[Flow] = (),
    only: Iterable[str] = (),
    sampling: Sampling = CERTAIN,
    progress: Progress,
) -> Assessment:
    """Replay the witnesses and ``corpus`` on both sides, and return what will change.

    ``late`` is ``then`` with the rules that stay registered after kube-proxy's; None where none stay.
    ``only`` names the flows to send, if not all. A difference is reported only if packets show it, and
    every difference that they show is reported, under the first detector that claims it.
    Raises MachineError when the machine fails a side or does not take its rules.
    """
    flows, measures, counts = witnesses(facts)
    flows.update((flow.id, flow) for flow in corpus if flow.id not in flows)
    wanted = set(only)
    chosen = [flow for flow in flows.values() if not wanted or flow.id in wanted]
    measures = {flow.id: measures[flow.id] for flow in chosen if flow.id in measures}
    afterwards = _late_flows(facts) if late is not None else frozenset()
    try_them = partial(try_flows, facts, today=today, progress=progress, sampling=sampling)
    trial = try_them(chosen, then=then, measures=measures)
    trials: tuple[Trial, ...] = (trial,)
    if late is not None and (again := [flow for flow in chosen if flow.id in afterwards]):
        trials += (try_them(again, then=late, measures={}),)
    found: dict[tuple[str, str], Finding] = {}
    unexplained: dict[tuple[int, str], Finding] = {}
    for number, seen in ((n, seen) for n, one in enumerate(trials) for seen in one.seen):
        claimed = _claim(facts, seen)
        seen = seen.without_tracing()
        if claimed is None:
            told = Finding(entry=None, subject=_UNEXPLAINED, seen=(seen,))
            unexplained.setdefault((number, seen.flow.id), told)
            continue
        one, claim = claimed
        key = (one.id, claim.subject)
        found[key] = _added(found.get(key), one, claim, seen)
    for fact in stated(facts):
        one = entry(fact.k)
        if one.holds_at(facts.version) and not wanted:
            found[fact.k, fact.subject] = Finding(
                entry=one, subject=fact.subject, lines=fact.lines, told=fact.told
            )
    shown = {k for k, _ in found}
    checked = tuple(
        Checked(entry=one, witnesses=counts[one.id])
        for one in catalogue()
        if one.id in counts and one.id not in shown and not wanted
    )
    return Assessment(
        facts=facts,
        findings=tuple(found[key] for key in sorted(found)),
        unexplained=tuple(unexplained.values()),
        leaks=tuple(leaks(facts, trial.routed)),
        checked=checked,
        flows=len(chosen),
        disputed=tuple(dict.fromkeys(one for each in trials for one in each.disputed)),
        sides=tuple(side for each in trials for side in each.sides),
    )


def _late_flows(facts: Facts) -> frozenset[str]:
    """The witnesses that depend on the order in which rules of one priority are registered."""
    late = [d for d in DETECTORS if d.late and entry(d.k).holds_at(facts.version)]
    return frozenset(flow.id for detector in late for flow in detector.witnesses(facts))


def _claim(facts: Facts, seen: Seen) -> tuple[Entry, Claim] | None:
    for detector in DETECTORS:
        one = entry(detector.k)
        if not one.holds_at(facts.version) or not one.allows(seen.today_end, seen.then_end):
            continue
        claim = detector.claims(facts, seen)
        if claim is not None:
            return one, claim
    return None


def _added(before: Finding | None, one: Entry, claim: Claim, seen: Seen) -> Finding:
    lines = {line.origin: line for line in (() if before is None else before.lines)}
    lines.update((line.origin, line) for line in claim.lines)
    return Finding(
        entry=one,
        subject=claim.subject,
        lines=tuple(sorted(lines.values(), key=lambda line: line.origin.line)),
        seen=_one_of_each_flow((*(() if before is None else before.seen), seen)),
        counted=claim.counted,
    )


def _one_of_each_flow(seen: Iterable[Seen]) -> tuple[Seen, ...]:
    """Of the ways of a flow that show the same, the first."""
    first: dict[str, Seen] = {}
    for one in seen:
        first.setdefault(one.flow.id, one)
    return tuple(first.values())
