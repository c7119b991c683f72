"""kube-proxy's filter rules next to other firewalls (K04, K05, K10, K11, K32, K33)."""

from __future__ import annotations

from collections.abc import Iterator

from backends.model.flow import Again, Flow, Reply
from backends.model.packet import Packet
from nfparity.assess.difference import ChangedPacket, Claim, Detector, Evidence, evidence
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Facts
from nfparity.assess.node.other_rules import Denial
from nfparity.kubeproxy.service import Purpose
from translate.dataclass import replace
from translate.ir import Family, Hook, Protocol, TcpFlag, format_address

__all__ = ["FIREWALL"]

_HOLES = (Purpose.ACCEPT_MARKED, Purpose.ACCEPT_RELATED, Purpose.HEALTH_CHECK)
_KUBE_PROXY_METRICS = 10249


def _invalid(facts: Facts) -> Iterator[Flow]:
    """Yield an answer of a connection whose first packet did not pass this node (asymmetric routing)."""
    if not any(facts.state.lines_for(Purpose.DROP_INVALID)):
        return
    inside, outside = facts.client("inside"), facts.client("outside")
    if inside is None or outside is None:
        return
    for client, other in ((inside, outside), (outside, inside)):
        packet = Packet(
            family=facts.family,
            src=client.address,
            dst=other.address,
            proto=Protocol.TCP,
            sport=80,
            dport=41000,
            flags=TcpFlag.SYN | TcpFlag.ACK,
        )
        yield facts.flow(
            "K05", client, packet, about="forwarded", why="an answer whose request took another route"
        )


def _claim_k05(facts: Facts, changed: ChangedPacket) -> Claim | None:
    lines = tuple(facts.state.lines_for(Purpose.DROP_INVALID))
    if not changed.matched_any(line.origin for line in lines):
        return None
    return Claim(subject="every forwarded packet", lines=evidence(lines))


def _guarded(facts: Facts) -> Iterator[Flow]:
    """Yield a packet from a neighbour to the node's loopback address and kube-proxy's metrics port."""
    outside = facts.client("outside")
    if (
        outside is None
        or facts.family is not Family.IP
        or not any(facts.state.lines_for(Purpose.LOCALNET_GUARD))
    ):
        return
    packet = Packet(
        family=facts.family,
        src=outside.address,
        dst=facts.places.loopback,
        proto=Protocol.TCP,
        sport=41000,
        dport=_KUBE_PROXY_METRICS,
    )
    about = format_address(facts.family, facts.places.loopback)
    yield facts.flow(
        "K32", outside, packet, about=about, why="from the network to the node's loopback address"
    )


def _claim_k32(facts: Facts, changed: ChangedPacket) -> Claim | None:
    if not facts.is_loopback(changed.packet.dst):
        return None
    lines = tuple(facts.state.lines_for(Purpose.LOCALNET_GUARD))
    if not changed.matched_any(line.origin for line in lines):
        return None
    return Claim(subject="the node's own sockets at 127.0.0.0/8", lines=evidence(lines))


def _used_services(facts: Facts, k: str) -> Iterator[Flow]:
    """Yield flows from each client to every service, with answers, because a firewall may drop only these."""
    for service in facts.services:
        addresses = [(a, service.port) for a in service.external_addresses]
        if service.cluster_ip is not None:
            addresses.append((service.cluster_ip, service.port))
        if service.node_port is not None and facts.places.own:
            addresses.append((facts.places.own[0], service.node_port))
        for address, port in addresses:
            for client in facts.clients():
                packet = facts.packet(client, address, service, port)
                about = f"{facts.label(service)}/{format_address(facts.family, address)}:{port}"
                flow = facts.flow(k, client, packet, about=about, why="a service behind a firewall")
                yield replace(flow, steps=(*flow.steps, Reply(), Again()))


def _health_checks(facts: Facts) -> Iterator[Flow]:
    outside = facts.client("outside")
    for service in facts.services:
        if service.health_check_port is None or outside is None or not facts.places.own:
            continue
        packet = Packet(
            family=facts.family,
            src=outside.address,
            dst=facts.places.own[0],
            proto=Protocol.TCP,
            sport=41000,
            dport=service.health_check_port,
        )
        about = f"{facts.label(service)}/health"
        yield facts.flow("K04", outside, packet, about=about, why="a load balancer's health check")


def _k04(facts: Facts) -> Iterator[Flow]:
    if facts.other_rules.denials:
        yield from _health_checks(facts)
        yield from _used_services(facts, "K04")


def _k11(facts: Facts) -> Iterator[Flow]:
    if facts.other_rules.drops and not facts.other_rules.denials:
        yield from _health_checks(facts)
        yield from _used_services(facts, "K11")


def _denied(facts: Facts, changed: ChangedPacket) -> Denial | None:
    """Return the denial that probably applied: in INPUT for local delivery, otherwise in FORWARD."""
    hook = Hook.INPUT if changed.fate_before is Fate.LOCAL else Hook.FORWARD
    return next((d for d in facts.other_rules.denials if d.hook is hook), None)


def _holes(facts: Facts, changed: ChangedPacket) -> tuple[Evidence, ...]:
    """Return the rules of kube-proxy that accepted the packet in iptables mode."""
    matched = [facts.index.lines.get(rule.origin.line) for rule in changed.matched]
    return evidence(known[0] for known in matched if known is not None and known[0].part in _HOLES)


def _subject(facts: Facts, packet: Packet) -> str:
    service = facts.by_cluster_ip(packet) or facts.by_external(packet) or facts.by_node_port(packet)
    if service is not None:
        return facts.label(service)
    if isinstance(packet.dport, int) and facts.is_own(packet.dst):
        service = facts.index.by_health_check.get(packet.dport)
    return "forwarded traffic" if service is None else f"{facts.label(service)}, health check"


def _claim_k04(facts: Facts, changed: ChangedPacket) -> Claim | None:
    denial = _denied(facts, changed)
    holes = _holes(facts, changed)
    if denial is None or not holes:
        return None
    last = evidence([denial.rule]) if denial.rule is not None else (Evidence(denial.chain.origin),)
    return Claim(subject=_subject(facts, changed.packet), lines=(*holes, *last))


def _claim_k11(facts: Facts, changed: ChangedPacket) -> Claim | None:
    holes = _holes(facts, changed)
    if not facts.other_rules.drops or not holes or _denied(facts, changed) is not None:
        return None
    return Claim(subject=_subject(facts, changed.packet), lines=holes)


def _k10(facts: Facts) -> Iterator[Flow]:
    if facts.other_rules.intruders:
        yield from _used_services(facts, "K10")


def _claim_k10(facts: Facts, changed: ChangedPacket) -> Claim | None:
    matched = [rule for rule in facts.other_rules.intruders if changed.matched_any([rule.origin])]
    if not matched:
        return None
    return Claim(subject=_subject(facts, changed.packet), lines=evidence(matched))


def _k33(facts: Facts) -> Iterator[Flow]:
    if not facts.other_rules.denials:
        return
    for service in facts.services:
        if service.cluster_ip is None or not any(service.lines_for(Purpose.NO_ENDPOINTS)):
            continue
        for client in facts.clients():
            packet = facts.packet(client, service.cluster_ip, service, service.port)
            yield facts.flow(
                "K33", client, packet, about=facts.label(service), why="a service without endpoints"
            )


def _claim_k33(facts: Facts, changed: ChangedPacket) -> Claim | None:
    if not facts.other_rules.denials:
        return None
    for rule in changed.matched:
        line, service = facts.index.lines.get(rule.origin.line, (None, None))
        if line is not None and line.part is Purpose.NO_ENDPOINTS and service is not None:
            return Claim(
                subject=facts.label(service), lines=evidence(service.lines_for(Purpose.NO_ENDPOINTS))
            )
    return None


FIREWALL = (
    Detector(k="K10", flows=_k10, claims=_claim_k10),
    Detector(k="K05", flows=_invalid, claims=_claim_k05),
    Detector(k="K32", flows=_guarded, claims=_claim_k32),
    Detector(k="K33", flows=_k33, claims=_claim_k33, late=True),
    Detector(k="K04", flows=_k04, claims=_claim_k04),
    Detector(k="K11", flows=_k11, claims=_claim_k11),
)
