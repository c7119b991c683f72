"""The severity of findings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from backends.model.flow import Flow, Send
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.assessing import Finding
from nfparity.assess.catalogue import entry
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.node.facts import Facts
from nfparity.assess.severity import Severity, severity_of
from translate.ir import Family, Protocol, parse_address

SERVICE = Outcome(verdict=Verdict.FORWARD, out="cni0", src=1, dst=2, dnat=True)
ROUTED = Outcome(verdict=Verdict.FORWARD, out="eth0", src=1, dst=2)
LOCAL = Outcome(verdict=Verdict.LOCAL, src=1, dst=2)
DROPPED = Outcome(verdict=Verdict.DROP)
REJECTED = Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset")
OUTSIDE, CLUSTER = "192.0.2.9", "10.96.0.1"


def changed(before: Outcome, after: Outcome, dst: str = OUTSIDE) -> ChangedPacket:
    packet = Packet(
        family=Family.IP, src=1, dst=parse_address(Family.IP, dst), proto=Protocol.TCP, sport=1, dport=2
    )
    flow = Flow(id="x", steps=(Send(packet=packet, entry="eth0"),))
    return ChangedPacket(flow=flow, step=0, packet=packet, entry="eth0", before=before, after=after)


@pytest.mark.parametrize(
    ("before", "after", "dst", "severity"),
    [
        (SERVICE, DROPPED, OUTSIDE, Severity.BREAKS),
        (SERVICE, LOCAL, OUTSIDE, Severity.BREAKS),
        (SERVICE, replace(SERVICE, dst=3), OUTSIDE, Severity.CHANGES),
        (LOCAL, REJECTED, OUTSIDE, Severity.BREAKS),
        (LOCAL, SERVICE, OUTSIDE, Severity.CHANGES),
        (ROUTED, DROPPED, OUTSIDE, Severity.BREAKS),
        (ROUTED, REJECTED, CLUSTER, Severity.CHANGES),
        (DROPPED, ROUTED, OUTSIDE, Severity.CHANGES),
    ],
)
def test_severity(
    before: Outcome, after: Outcome, dst: str, severity: Severity, text: str, made: Callable[[str], Facts]
) -> None:
    facts = made(text)
    assert parse_address(Family.IP, CLUSTER) in facts.cluster_ips
    finding = Finding(entry=entry("K01"), subject="a", examples=(changed(before, after, dst),))
    assert severity_of(finding, facts) is severity


def test_the_gravest_packet_counts(text: str, made: Callable[[str], Facts]) -> None:
    examples = (changed(DROPPED, ROUTED), changed(SERVICE, DROPPED))
    assert severity_of(Finding(entry=None, subject="a", examples=examples), made(text)) is Severity.BREAKS


def test_a_path_that_is_not_observed_is_another_outcome(text: str, made: Callable[[str], Facts]) -> None:
    example = replace(changed(SERVICE, Outcome(verdict=Verdict.UNSENT)), instead="never observed in any run")
    assert severity_of(Finding(entry=None, subject="a", examples=(example,)), made(text)) is Severity.CHANGES


def test_no_packet(text: str, made: Callable[[str], Facts]) -> None:
    finding = Finding(entry=entry("K08"), subject="Linux", description="Linux is too old")
    assert severity_of(finding, made(text)) is Severity.SNAPSHOT
