"""External and load balancer addresses: ranges, and services without endpoints (K14-K16, K19, K24, K41)."""

from __future__ import annotations

from collections.abc import Iterator

from backends.model.flow import Flow
from nfparity.assess.difference import ChangedPacket, Claim, Detector, evidence
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Client, Facts
from nfparity.kubeproxy.service import Purpose, Service
from translate.dataclass import replace
from translate.ir import format_address

__all__ = ["LOAD_BALANCERS"]

_REFUSALS = (Purpose.NO_ENDPOINTS, Purpose.NO_LOCAL_ENDPOINTS)
_ADDRESSES = (Purpose.EXTERNAL_IP, Purpose.LOAD_BALANCER_IP, Purpose.OUTSIDE_IP)


def _to_each_address(
    facts: Facts, k: str, service: Service, clients: tuple[Client, ...], why: str
) -> Iterator[Flow]:
    for address in service.external_addresses:
        for client in clients:
            packet = facts.packet(client, address, service, service.port)
            about = f"{facts.label(service)}/{format_address(facts.family, address)}"
            yield facts.flow(k, client, packet, about=about, why=why)


def _has_refusal(service: Service, part: Purpose) -> bool:
    return any(service.lines_for(part))


def _in_ranges(service: Service, address: int) -> bool:
    return not service.source_ranges or any(address in r for r in service.source_ranges)


def _k14(facts: Facts) -> Iterator[Flow]:
    for service in facts.services:
        if _has_refusal(service, Purpose.NO_ENDPOINTS):
            yield from _to_each_address(
                facts, "K14", service, facts.clients(), "a load balancer IP of a service without endpoints"
            )


def _k15(facts: Facts) -> Iterator[Flow]:
    for service in facts.services:
        strangers = [a for a in facts.places.outside if not _in_ranges(service, a)]
        for address in strangers[:1]:
            entry = facts.places.behind(address)
            clients = (Client("outside", address, entry),) if entry else ()
            for flow in _to_each_address(
                facts, "K15", service, clients, "out of the source ranges, with TTL 1"
            ):
                send = flow.first
                yield replace(flow, steps=(replace(send, packet=replace(send.packet, ttl=1)),))


def _k16(facts: Facts) -> Iterator[Flow]:
    return _from_node(facts, "K16", Purpose.NO_ENDPOINTS)


def _from_node(facts: Facts, entry: str, refusal: Purpose) -> Iterator[Flow]:
    """Yield packets of the node to each external address of the services with this refusal."""
    node = facts.client("node")
    for service in facts.services:
        if node is not None and _has_refusal(service, refusal):
            yield from _to_each_address(
                facts, entry, service, (node,), "the node itself uses an external address"
            )


def _k19(facts: Facts) -> Iterator[Flow]:
    for service in facts.services:
        if _other_node_port(facts, service) is not None:
            yield from _to_each_address(
                facts,
                "K19",
                service,
                facts.clients(),
                "an external address and port that is also another service's node port",
            )


def _other_node_port(facts: Facts, service: Service) -> Service | None:
    """Return the service whose node port this service shadows on an address of the node."""
    if not any(facts.is_own(a) for a in service.external_addresses):
        return None
    for other in facts.services:
        if other is not service and other.node_port == service.port and other.protocol is service.protocol:
            return other
    return None


def _k24(facts: Facts) -> Iterator[Flow]:
    return _from_node(facts, "K24", Purpose.NO_LOCAL_ENDPOINTS)


def _k41(facts: Facts) -> Iterator[Flow]:
    outside = facts.client("outside")
    if outside is None:
        return
    proxy = Client("proxy", outside.address, None)
    for service in facts.services:
        if _has_refusal(service, Purpose.NO_LOCAL_ENDPOINTS):
            yield from _to_each_address(
                facts, "K41", service, (proxy,), "a proxy on the node keeps its client's address"
            )


def _claim_k14(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_external(changed.packet)
    if service is None or not _has_refusal(service, Purpose.NO_ENDPOINTS) or changed.packet.ttl <= 1:
        return None
    if service.source_ranges and _in_ranges(service, changed.packet.src):
        return None
    return Claim(subject=facts.label(service), lines=evidence(service.lines_for(*_REFUSALS)))


def _claim_k15(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_external(changed.packet)
    if service is None or not service.source_ranges or _in_ranges(service, changed.packet.src):
        return None
    if not (changed.before.reject_with or "").startswith(("icmp-11", "icmp6-3")):
        return None
    return Claim(subject=facts.label(service), lines=evidence(service.lines_for(Purpose.OUT_OF_RANGE)))


def _claim_k16(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_external(changed.packet)
    if changed.entry is not None or service is None or not _has_refusal(service, Purpose.NO_ENDPOINTS):
        return None
    return Claim(subject=facts.label(service), lines=evidence(service.lines_for(*_REFUSALS)), counted=False)


def _claim_k19(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_external(changed.packet)
    other = None if service is None else _other_node_port(facts, service)
    if service is None or other is None:
        return None
    if changed.fate_before is Fate.SERVICE and changed.before.dst not in {e.address for e in other.endpoints}:
        return None
    subject = f"{facts.label(service)}, over {facts.label(other)}"
    return Claim(
        subject=subject,
        lines=evidence((*service.lines_for(*_ADDRESSES), *other.lines_for(Purpose.NODE_PORT))),
    )


def _claim_k24(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_external(changed.packet)
    if changed.entry is not None or service is None or not _has_refusal(service, Purpose.NO_LOCAL_ENDPOINTS):
        return None
    lines = [
        line for line in service.lines_for(*_ADDRESSES, *_REFUSALS) if line.address == changed.packet.dst
    ]
    return Claim(subject=facts.label(service), lines=evidence(lines))


def _claim_k41(facts: Facts, changed: ChangedPacket) -> Claim | None:
    return None if facts.is_own(changed.packet.src) else _claim_k24(facts, changed)


LOAD_BALANCERS = (
    Detector(k="K19", flows=_k19, claims=_claim_k19),
    Detector(k="K41", flows=_k41, claims=_claim_k41),
    Detector(k="K24", flows=_k24, claims=_claim_k24),
    Detector(k="K16", flows=_k16, claims=_claim_k16),
    Detector(k="K15", flows=_k15, claims=_claim_k15),
    Detector(k="K14", flows=_k14, claims=_claim_k14),
)
