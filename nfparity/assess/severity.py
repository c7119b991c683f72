"""Severity of findings: the consequence for traffic, read from the fates of the packets that show them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Facts
from nfparity.assess.replay.orders import OrderDifference

__all__ = ["Severity", "gravest", "order_severity", "severities", "severity_of"]


class Severity(StrEnum):
    """The consequence of a finding, the gravest first."""

    BREAKS = "breaks"
    """A packet that reaches its receiver before the change does not reach it afterwards."""
    CHANGES = "changes"
    """A packet is treated differently, but no packet is lost that was delivered before."""
    SNAPSHOT = "in the snapshot"
    """A fact of the snapshot shows it, without a packet."""
    BEFORE = "existed before"
    """It is a problem of the iptables mode, whether or not it remains."""
    NOT_JUDGED = "not judged"
    """Simulator and kernel disagree before the change, so the packet is not compared."""


def gravest(severities: Iterable[Severity]) -> Severity:
    """Return the gravest of some severities."""
    return min(severities, key=tuple(Severity).index)


_LOST: Final = frozenset({Fate.DROPPED, Fate.REJECTED})


def severity_of(finding: Finding, facts: Facts) -> Severity:
    """Return the gravest consequence of a finding's packets."""
    if not finding.examples:
        return Severity.SNAPSHOT
    broken = any(_is_lost(changed, facts) for changed in finding.examples)
    return Severity.BREAKS if broken else Severity.CHANGES


def order_severity(difference: OrderDifference) -> Severity:
    """Return the consequence of an order: whether only one of the two orders loses a packet."""
    lost = any(
        (changed.fate_before in _LOST) != (changed.fate_after in _LOST) for changed in difference.examples
    )
    return Severity.BREAKS if lost else Severity.CHANGES


def severities(assessment: Assessment) -> Iterator[tuple[Severity, str]]:
    """Yield the severity and the name of every finding: an id of the catalogue, or words for the others."""
    for finding in assessment.findings:
        assert finding.entry is not None
        yield severity_of(finding, assessment.facts), finding.entry.id
    for finding in assessment.unexplained:
        yield severity_of(finding, assessment.facts), "unexplained"
    for order in assessment.orders:
        yield order_severity(order), f"order of registration: {order.binding}"
    for leak in assessment.leaks:
        yield Severity.BEFORE, f"leaks of {leak.kind}"
    for _ in assessment.disputed:
        yield Severity.NOT_JUDGED, "simulator and kernel disagree"


def _is_lost(changed: ChangedPacket, facts: Facts) -> bool:
    """Return whether a packet had a receiver before the change, and has none or another afterwards.

    A packet that leaves untranslated for a service address has no receiver, although it is forwarded. A
    packet without an observed outcome does not count as lost, because it may have taken another path.
    """
    if changed.measured or changed.instead:
        return False
    match changed.fate_before:
        case Fate.SERVICE:
            return changed.fate_after in _LOST | {Fate.LOCAL, Fate.ROUTED, Fate.NONE}
        case Fate.LOCAL:
            return changed.fate_after in _LOST | {Fate.ROUTED, Fate.NONE}
        case Fate.ROUTED:
            leaves = changed.packet.dst in facts.cluster_ips or (
                facts.service_range is not None and changed.packet.dst in facts.service_range
            )
            return not leaves and changed.fate_after in _LOST | {Fate.NONE}
        case _:
            return False
