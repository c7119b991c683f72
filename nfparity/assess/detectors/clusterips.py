"""ClusterIPs: undefined ports, unassigned addresses, pings, addresses bound here (K06, K07, K13, K18)."""

from __future__ import annotations

from collections.abc import Iterator

from backends.model.flow import Flow
from backends.model.packet import Icmp6Type, IcmpType, Packet
from nfparity.assess.difference import ChangedPacket, Claim, Detector, Evidence, evidence
from nfparity.assess.node.facts import Facts
from nfparity.kubeproxy.service import Purpose
from translate.ir import Family, Protocol, format_address

__all__ = ["CLUSTER_IPS", "unassigned_flows"]


def _undefined_port(facts: Facts, address: int) -> int:
    taken = {s.port for s in facts.at_cluster_ip(address)}
    return next(port for port in range(9, 65536) if port not in taken)


def _k06(facts: Facts) -> Iterator[Flow]:
    for address in facts.cluster_ips:
        port = _undefined_port(facts, address)
        for client in facts.clients():
            packet = Packet(
                family=facts.family,
                src=client.address,
                dst=address,
                proto=Protocol.TCP,
                sport=41000,
                dport=port,
            )
            about = f"{format_address(facts.family, address)}:{port}"
            yield facts.flow(
                "K06", client, packet, about=about, why="a port that no service of the ClusterIP has"
            )


def _k13(facts: Facts) -> Iterator[Flow]:
    four = facts.family is Family.IP
    for address in facts.cluster_ips:
        for client in facts.clients():
            packet = Packet(
                family=facts.family,
                src=client.address,
                dst=address,
                proto=Protocol.ICMP if four else Protocol.ICMPV6,
                icmp_type=IcmpType.ECHO_REQUEST if four else Icmp6Type.ECHO_REQUEST,
                icmp_code=0,
                icmp_id=7,
            )
            about = format_address(facts.family, address)
            yield facts.flow("K13", client, packet, about=about, why="a ping to a ClusterIP")


def _k07(facts: Facts) -> Iterator[Flow]:
    return unassigned_flows(facts, "K07")


def unassigned_flows(facts: Facts, k: str) -> Iterator[Flow]:
    """Yield packets to an address that no service has; their ids begin with ``k``."""
    address = _unassigned(facts)
    if address is None:
        return
    for client in facts.clients():
        for proto, name in ((Protocol.TCP, "tcp"), (Protocol.UDP, "udp")):
            packet = Packet(
                family=facts.family, src=client.address, dst=address, proto=proto, sport=41000, dport=80
            )
            about = f"{format_address(facts.family, address)}/{name}"
            yield facts.flow(
                k, client, packet, about=about, why="an address of the service range that no service has"
            )


def _unassigned(facts: Facts) -> int | None:
    """Return an unassigned address in the middle of the range, where other uses are least likely."""
    inside = facts.service_range
    if inside is None or inside.size < 4:
        return None
    taken = {*facts.cluster_ips, *facts.places.own}
    start = inside.low + inside.size // 2
    return next((a for a in range(start, inside.high) if a not in taken), None)


def _k18(facts: Facts) -> Iterator[Flow]:
    for service in facts.services:
        address = service.cluster_ip
        if address is not None and facts.is_own(address) and any(service.lines_for(Purpose.NO_ENDPOINTS)):
            for client in facts.clients():
                packet = facts.packet(client, address, service, service.port)
                yield facts.flow(
                    "K18",
                    client,
                    packet,
                    about=facts.label(service),
                    why="a ClusterIP that is bound on the node",
                )


def _names(facts: Facts, address: int) -> str:
    return ", ".join(dict.fromkeys(facts.label(s) for s in facts.at_cluster_ip(address)))


def _claim_k06(facts: Facts, changed: ChangedPacket) -> Claim | None:
    packet = changed.packet
    if packet.dst not in facts.cluster_ips or not packet.has_ports or facts.by_cluster_ip(packet) is not None:
        return None
    return Claim(subject=_names(facts, packet.dst), lines=_cluster_ip_lines(facts, packet.dst), counted=False)


def _claim_k13(facts: Facts, changed: ChangedPacket) -> Claim | None:
    if changed.packet.dst not in facts.cluster_ips or changed.packet.has_ports:
        return None
    address = changed.packet.dst
    return Claim(subject=_names(facts, address), lines=_cluster_ip_lines(facts, address), counted=False)


def _claim_k07(facts: Facts, changed: ChangedPacket) -> Claim | None:
    dst, inside = changed.packet.dst, facts.service_range
    if inside is None or dst not in inside or dst in facts.cluster_ips:
        return None
    return Claim(subject="the service range", counted=False)


def _claim_k18(facts: Facts, changed: ChangedPacket) -> Claim | None:
    service = facts.by_cluster_ip(changed.packet)
    if service is None or not facts.is_own(changed.packet.dst):
        return None
    lines = evidence(service.lines_for(Purpose.NO_ENDPOINTS, Purpose.NO_LOCAL_ENDPOINTS))
    return Claim(subject=facts.label(service), lines=lines, counted=False)


def _cluster_ip_lines(facts: Facts, address: int) -> tuple[Evidence, ...]:
    parts = (Purpose.CLUSTER_IP, Purpose.NO_ENDPOINTS, Purpose.NO_LOCAL_ENDPOINTS)
    return evidence(
        line
        for service in facts.at_cluster_ip(address)
        for line in service.lines_for(*parts)
        if line.address == address
    )


CLUSTER_IPS = (
    Detector(k="K18", flows=_k18, claims=_claim_k18),
    Detector(k="K06", flows=_k06, claims=_claim_k06),
    Detector(k="K13", flows=_k13, claims=_claim_k13),
    Detector(k="K07", flows=_k07, claims=_claim_k07),
)
