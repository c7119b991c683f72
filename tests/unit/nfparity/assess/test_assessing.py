"""Findings are what packets show; two simulators stand for the two sides."""

from __future__ import annotations

from collections.abc import Callable

from backends.model.contract import Backend
from backends.model.flow import Flow, Send
from backends.model.packet import Packet
from nfparity.assess.assessing import Assessment, assess, detector_flows
from nfparity.assess.catalogue import entry
from nfparity.assess.detectors import DETECTORS
from nfparity.assess.node.facts import Facts
from translate.ir import Family, Protocol, parse_address

Side = Callable[[str], Backend]
DROP_INVALID = "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP\n"


def run(facts: Facts, before: Backend, after: Backend, corpus: tuple[Flow, ...] = ()) -> Assessment:
    # Affinity is measured on a kernel alone: hundreds of draws are too many ways to simulate.
    wanted = [i for i in detector_flows(facts)[0] if not i.startswith("K25")] + [f.id for f in corpus]
    return assess(
        facts, before=before, after=after, corpus=corpus, only=wanted, progress=lambda name, done, total: None
    )


def stranger() -> Flow:
    packet = Packet(
        family=Family.IP,
        src=parse_address(Family.IP, "10.244.0.7"),
        dst=parse_address(Family.IP, "192.0.2.9"),
        proto=Protocol.TCP,
        sport=1,
        dport=23,
    )
    return Flow(id="stranger", steps=(Send(packet=packet, entry="cni0"),))


def test_the_same_rules_change_nothing_but_leak(text: str, facts: Facts, simulated: Side) -> None:
    found = run(facts, simulated(text), simulated(text))
    assert not found.findings
    assert not found.unexplained
    assert not found.disputed
    assert {leak.device for leak in found.leaks} == {"eth0"}
    assert all(leak.remains for leak in found.leaks)


def test_only_what_differs_is_found_under_its_name(text: str, facts: Facts, simulated: Side) -> None:
    assert DROP_INVALID in text
    found = run(facts, simulated(text), simulated(text.replace(DROP_INVALID, "")))
    assert [(f.entry and f.entry.id, f.subject) for f in found.findings] == [
        ("K05", "every forwarded packet")
    ]
    assert [line.origin.line for line in found.findings[0].lines] == [28]
    assert not found.unexplained


def test_one_difference_is_tested_alone(text: str, facts: Facts, simulated: Side) -> None:
    before, after = simulated(text), simulated(text.replace(DROP_INVALID, ""))
    assessment = assess(
        facts, before=before, after=after, corpus=(stranger(),), only=("K05",), progress=lambda *_: None
    )
    assert [finding.entry and finding.entry.id for finding in assessment.findings] == ["K05"]
    assert assessment.flows == sum(name.startswith("K05/") for name in detector_flows(facts)[0]) > 0


def test_a_difference_of_no_kind_is_told_with_its_flow(text: str, facts: Facts, simulated: Side) -> None:
    blocked = text.replace(DROP_INVALID, f"{DROP_INVALID}-A KUBE-FORWARD -p tcp -m tcp --dport 23 -j DROP\n")
    found = run(facts, simulated(text), simulated(blocked), (stranger(),))
    assert not found.findings
    (one,) = found.unexplained
    assert one.entry is None
    assert one.examples[0].flow.id == "stranger"


def test_where_simulator_and_kernel_dispute_today_nothing_is_said(
    text: str, facts: Facts, simulated: Side
) -> None:
    other = text.replace(DROP_INVALID, "")
    found = run(facts, simulated(other), simulated(other))
    assert not found.findings
    assert found.disputed
    assert all(one.flow_id.startswith("K05") for one in found.disputed)
    assert found.changes


def test_a_kind_outside_of_its_versions_is_not_looked_for(text: str, made: Callable[..., Facts]) -> None:
    ids = detector_flows(made(text, version=(1, 33)))[0]
    assert any(one.startswith("K24/") for one in ids)
    assert any(one.startswith("K07/") for one in ids)
    later = detector_flows(made(text, version=(1, 34)))[0]
    assert not any(one.startswith("K24/") for one in later)


def test_detectors_flows_have_distinct_ids(facts: Facts) -> None:
    ids = [flow.id for detector in DETECTORS for flow in detector.flows(facts)]
    assert len(ids) == len(set(ids))
    assert all(
        flow.id.startswith(f"{detector.k}/") for detector in DETECTORS for flow in detector.flows(facts)
    )


def test_counters_say_what_is_in_use(text: str, made: Callable[..., Facts], simulated: Side) -> None:
    counted = text.replace(DROP_INVALID, f"[7:420] {DROP_INVALID}")
    found = run(made(counted), simulated(text), simulated(text.replace(DROP_INVALID, "")))
    assert [(f.entry, f.traffic_seen) for f in found.findings] == [(entry("K05"), 7)]
