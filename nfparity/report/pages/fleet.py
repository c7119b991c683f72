"""The page of ``nfparity assess`` for many nodes: findings by difference, each with its nodes."""

from __future__ import annotations

import shlex

from harness.counted import counted
from nfparity.assess.fleet.grouping import Fleet
from nfparity.assess.fleet.node import NOT_TESTED, NodeDifference
from nfparity.assess.fleet.paths import labels
from nfparity.assess.severity import Severity, gravest
from nfparity.report.fleet import difference_title
from nfparity.report.pages.content import Finding, Page, Section
from nfparity.report.pages.levels import LEVELS, rank
from nfparity.report.pages.page import render
from translate.dataclass import dataclass, field

__all__ = ["fleet_page"]

_NODES = 12


@dataclass(slots=True)
class _Spread:
    """The nodes with one difference for one subject, as indices, with the finding on each."""

    nodes: list[int] = field(default_factory=list)
    severities: list[Severity] = field(default_factory=list)
    packets: list[int] = field(default_factory=list)


def fleet_page(fleet: Fleet, *, version: str) -> str:
    """Return the findings of all nodes as a page; ``version`` is this program's."""
    answers = sorted((answer for group in fleet.alike for answer in group.answers), key=lambda a: a.path)
    paths = [answer.path for answer in answers]
    names = labels(paths)
    spreads: dict[NodeDifference, _Spread] = {}
    for number, answer in enumerate(answers):
        for difference in answer.differences:
            spread = spreads.setdefault(difference, _Spread())
            spread.nodes.append(number)
            spread.severities.append(difference.severity)
            if difference.packets is not None:
                spread.packets.append(difference.packets)
    by_kind: dict[tuple[str, str], list[Finding]] = {}
    for difference in sorted(spreads):
        if difference.id == NOT_TESTED:
            continue
        spread = spreads[difference]
        first = paths[spread.nodes[0]]
        finding = Finding(
            level=LEVELS[gravest(spread.severities)],
            subject=difference.subject,
            detail=f"on {len(spread.nodes)} of {len(paths)} nodes: {_some([names[n] for n in spread.nodes])}",
            traffic=_traffic(spread),
            command=shlex.join(["nfparity", "assess", first, *fleet.options]),
            nodes=tuple(spread.nodes),
        )
        by_kind.setdefault((difference.id, difference.family.value), []).append(finding)
    families = {family for _, family in by_kind}
    titles = {each.id: difference_title(each) for each in fleet.spread}
    sections = [
        Section(
            id=f"{k.replace(' ', '-')}-{family}",
            name=k,
            title=titles[k] + (f" (IPv{'6' if family == 'ip6' else '4'})" if len(families) > 1 else ""),
            findings=tuple(sorted(findings, key=lambda finding: rank(finding.level))),
        )
        for (k, family), findings in by_kind.items()
    ]
    failed = tuple(
        f"{answer.path}: {answer.failure.reason}" for answer in answers if answer.failure is not None
    )
    untested = tuple(
        f"{paths[number]}: IPv{difference.family.version}: {difference.subject}"
        for difference, spread in spreads.items()
        if difference.id == NOT_TESTED
        for number in spread.nodes
    )
    page = Page(
        title=f"{fleet.nodes} nodes: from kube-proxy's iptables mode to nftables",
        verdict=_verdict(fleet),
        good=fleet.status == 0,
        levels=tuple(LEVELS.values()),
        sections=tuple(sorted(sections, key=rank)),
        kind="Difference",
        facts=(
            ("Nodes", f"{fleet.nodes}, of which {fleet.failed} could not be assessed"),
            ("Packets", f"{counted(fleet.flows, 'flow')} through both rulesets on the kernel"),
        ),
        notes=tuple(note for note in (("Not assessed", failed), ("Not tested", untested)) if note[1]),
        nodes=names,
    )
    return render("findings.html", {"page": page, "version": version})


def _verdict(fleet: Fleet) -> str:
    affected = sum(
        any(d.id != NOT_TESTED for d in answer.differences)
        for group in fleet.alike
        for answer in group.answers
    )
    broken = sum(
        any(d.severity is Severity.BREAKS for d in answer.differences)
        for group in fleet.alike
        for answer in group.answers
    )
    failed = f" {fleet.failed} could not be assessed." if fleet.failed else ""
    if not affected:
        return f"Nothing changes on {fleet.nodes - fleet.failed} of {fleet.nodes} nodes.{failed}"
    breaks = f"on {broken} of them, traffic that works today breaks"
    return f"{affected} of {fleet.nodes} nodes have findings; {breaks}.{failed}"


def _some(names: list[str]) -> str:
    more = f", … and {len(names) - _NODES} more" if len(names) > _NODES else ""
    return ", ".join(names[:_NODES]) + more


def _traffic(spread: _Spread) -> str:
    if not spread.packets:
        return "unknown: no counters"
    return f"on {sum(packets > 0 for packets in spread.packets)} of {len(spread.nodes)} nodes"
