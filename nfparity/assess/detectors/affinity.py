"""Session affinity: the maximum number of remembered clients (K25)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.outcome import FlowResult, Outcome
from harness.diff.paths import PICKED, path_key
from nfparity.assess.difference import ChangedPacket, Claim, Detector, Measured, evidence
from nfparity.assess.node.facts import Facts
from nfparity.kubeproxy.service import Purpose, Service
from translate.dataclass import replace
from translate.ir import Family, parse_address

__all__ = ["AFFINITY", "REMEMBERED"]

REMEMBERED: Final = 100
"""The default size of a list of ``-m recent`` (module parameter ``ip_list_tot``)."""

_CLIENTS: Final = {
    Family.IP: parse_address(Family.IP, "198.18.0.0"),
    Family.IP6: parse_address(Family.IP6, "2001:2::"),
}
"""Benchmark networks (RFC 2544, RFC 5180), which no cluster uses."""

_MORE: Final = 50
"""The number of clients beyond the size of all lists; the chance that all keep their endpoint is 2^-50."""


def _k25(facts: Facts) -> Iterator[Flow]:
    """Yield flows of more clients than fit into the lists; each client connects twice."""
    outside = facts.client("outside")
    if outside is None:
        return
    for service in facts.services:
        if not service.affinity or service.cluster_ip is None or len(service.endpoints) < 2:
            continue
        count = REMEMBERED * len(service.endpoints) + _MORE
        first = facts.packet(outside, service.cluster_ip, service, service.port)
        rounds = tuple(
            Send(
                packet=replace(first, src=_CLIENTS[facts.family] + number, sport=port),
                entry=outside.entry,
            )
            for port in (42000, 43000)
            for number in range(1, count + 1)
        )
        if facts.places.behind(_CLIENTS[facts.family]) != outside.entry:
            continue
        flow = facts.flow(
            "K25", outside, first, about=facts.label(service), why=f"{count} clients, each twice"
        )
        yield Flow(id=flow.id, steps=rounds, why=flow.why, source=flow.source)


def _measure(facts: Facts, flow: Flow, before: FlowResult, after: FlowResult) -> Measured | None:
    """Return a finding if clients keep their endpoint in nftables mode only; equal input gives equal text."""
    kept = [_kept(flow, result) for result in (before, after)]
    clients = len(flow.steps) // 2
    if kept[0] == kept[1] or kept[1] < clients:
        return None
    return Measured(
        description=f"before: some of {clients} clients change endpoints on reconnecting; after: none",
        step=len(flow.steps) - 1,
        before=_any_of(flow, before),
        after=_any_of(flow, after),
    )


def _kept(flow: Flow, result: FlowResult) -> int:
    outcomes = result.branches[0].outcomes
    half = len(outcomes) // 2
    went = zip(outcomes[:half], outcomes[half:], strict=True)
    return sum(before.dst is not None and before.dst == after.dst for before, after in went)


def _any_of(flow: Flow, result: FlowResult) -> Outcome:
    """Return an outcome of the last packet that does not depend on the random choices."""
    sends = [step.packet for step in flow.steps if isinstance(step, Send)]
    sent = {packet.sport for packet in sends}
    outcomes = result.branches[0].outcomes
    changed = [outcome.sport for outcome in outcomes if outcome.snat]
    # Some of many picked ports are equal to the sent port.
    picked = 2 * sum(port in sent for port in changed) < len(changed)

    def as_last_packet(outcome: Outcome) -> Outcome:
        if outcome.src is None:
            return outcome
        if outcome.snat:
            return replace(outcome, sport=PICKED if picked else sends[-1].sport)
        return replace(outcome, src=sends[-1].src, sport=sends[-1].sport)

    different = dict.fromkeys(map(as_last_packet, outcomes))  # since clients are many, and endpoints few
    return min(different, key=lambda outcome: path_key(flow, (outcome,)))


def _claim_k25(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = _service(facts, changed)
    if not changed.measured or service is None:
        return None
    return Claim(subject=facts.label(service), lines=evidence(service.lines_for(Purpose.AFFINITY)))


def _service(facts: Facts, changed: ChangedPacket) -> Service | None:
    return facts.by_cluster_ip(changed.packet)


AFFINITY = (Detector(k="K25", flows=_k25, claims=_claim_k25, measure=_measure),)
