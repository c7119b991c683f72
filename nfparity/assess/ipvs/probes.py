"""Flows that show how a node's virtual services and their addresses are reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from backends.model.flow import Flow, Reply, Send
from backends.model.ipvs import IpvsTable, VirtualService
from backends.model.packet import Packet
from nfparity.assess.node.facts import Client, Facts
from nfparity.kubeproxy.service import Service
from translate.dataclass import dataclass, replace
from translate.ir import Protocol, TcpFlag, format_address

__all__ = ["Kind", "Probe", "probes_of"]

_SOURCE_PORT: Final = 41000
_MOST_CONNECTIONS: Final = 8
"""The greatest number of connections in one flow."""
_UNUSED_PORT: Final = 9
"""The port of the discard service, which no Service is likely to use."""


class Kind(StrEnum):
    """The purpose of a probe."""

    SERVICE = "service"
    """Connections to a virtual service."""
    LATE = "late"
    """A packet of a TCP connection that the node does not know."""
    ADDRESS = "address"
    """A packet to the address of a service, but not to one of its ports."""
    HEALTH = "health"
    """A packet to a health check node port at the address of a service."""
    SOURCE = "source"
    """A packet from outside whose source is the address of a service."""
    UNASSIGNED = "unassigned"
    """A packet to an address of the service range that no service has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One flow, and what it is about.

    ``service`` is the recovered service, ``virtual`` the virtual service that the flow is sent to.
    ``client`` is the flow's source. ``address`` is the service address that matters.
    """

    kind: Kind
    flow: Flow
    client: Client
    address: int
    subject: str
    service: Service | None = None
    virtual: VirtualService | None = None

    @property
    def connections(self) -> int:
        """The number of connections in the flow."""
        return sum(isinstance(step, Send) for step in self.flow.steps)


def probes_of(facts: Facts, table: IpvsTable) -> tuple[Probe, ...]:
    """Return the probes of a node; ``table`` has the virtual services of the family of ``facts``."""
    virtual_ips = _virtual_ips(facts, table)
    return tuple(
        {
            probe.flow.id: probe
            for probe in (
                *_service_probes(facts, table),
                *_address_probes(facts, virtual_ips),
                *_source_probes(facts, virtual_ips),
                *_unassigned_probes(facts, virtual_ips),
            )
        }.values()
    )


def _virtual_ips(facts: Facts, table: IpvsTable) -> dict[int, Service]:
    """Return the addresses of services that are not the node's otherwise, each with a service that has it."""
    addresses: dict[int, Service] = {}
    for service in facts.services:
        for address in (service.cluster_ip, *service.external_addresses):
            if address is not None and any(v.address == address for v in table.services):
                addresses.setdefault(address, service)
    return addresses


def _service_probes(facts: Facts, table: IpvsTable) -> Iterator[Probe]:
    for virtual in table.services:
        service = _service_of(facts, virtual)
        if service is None:
            continue
        weights = [server for server in virtual.servers if server.weight]
        count = min(max(len(weights), 1), _MOST_CONNECTIONS)
        for client in _clients(facts, service):
            packets = [_packet(facts, client, virtual, _SOURCE_PORT + number) for number in range(count)]
            steps = [step for p in packets for step in (Send(packet=p, entry=client.entry), Reply())]
            protocol = Protocol(virtual.protocol).name.lower()
            yield Probe(
                kind=Kind.SERVICE,
                flow=Flow(
                    id=f"service/{virtual.place}/{protocol}/{client.kind}",
                    steps=tuple(steps),
                    why=f"{client.kind} uses {facts.label(service)} at {virtual.place}",
                    source="detector",
                ),
                client=client,
                address=virtual.address,
                subject=facts.label(service),
                service=service,
                virtual=virtual,
            )
            if client.kind == "pod" and virtual.protocol is Protocol.TCP:
                late = replace(packets[0], flags=TcpFlag.ACK)
                why = f"a packet of a connection to {virtual.place} that the node does not know"
                yield replace(
                    _single(facts, Kind.LATE, virtual.place, client, late, virtual.address, service, why),
                    virtual=virtual,
                )


def _service_of(facts: Facts, virtual: VirtualService) -> Service | None:
    """Return the recovered service at a virtual service's address and port, or with its node port."""
    key = (virtual.address, virtual.protocol, virtual.port)
    service = facts.index.by_cluster_ip.get(key) or facts.index.by_external.get(key)
    return service or facts.index.by_node_port.get((virtual.protocol, virtual.port))


def _clients(facts: Facts, service: Service) -> Iterator[Client]:
    """Yield a client outside the cluster, a pod, the node itself, and an endpoint of the service."""
    outside = facts.client("outside")
    if outside is not None:
        yield outside
    own = {endpoint.address for endpoint in service.endpoints}
    pod = next(_pods(facts, without=own), None)
    if pod is not None:
        yield Client("pod", pod, facts.places.behind(pod))
    node = _node_address(facts)
    if node is not None:
        yield Client("node", node, None)
    itself = next((e.address for e in service.endpoints if e.local), None)
    if itself is not None and facts.places.behind(itself):
        yield Client("endpoint", itself, facts.places.behind(itself))


def _pods(facts: Facts, *, without: Iterable[int] = ()) -> Iterator[int]:
    """Yield addresses of pods on the node: endpoints of other services, then unused addresses."""
    excluded = set(without)
    local = [e.address for s in facts.services for e in s.endpoints if e.local]
    for address in dict.fromkeys((*local, *facts.places.inside)):
        if address not in excluded and facts.places.behind(address):
            yield address


def _node_address(facts: Facts) -> int | None:
    """Return the primary address of the node."""
    from nfparity.kubeproxy.nftables.inferred_config import primary_address

    return primary_address(facts.node, facts.family)


def _packet(facts: Facts, client: Client, virtual: VirtualService, sport: int) -> Packet:
    return Packet(
        family=facts.family,
        src=client.address,
        dst=virtual.address,
        proto=virtual.protocol,
        sport=sport,
        dport=virtual.port,
    )


def _address_probes(facts: Facts, virtual_ips: dict[int, Service]) -> Iterator[Probe]:
    for address, service in virtual_ips.items():
        text = format_address(facts.family, address)
        for client in _clients(facts, service):
            if client.kind == "endpoint":
                continue
            packet = Packet(
                family=facts.family,
                src=client.address,
                dst=address,
                proto=Protocol.TCP,
                sport=_SOURCE_PORT,
                dport=_UNUSED_PORT,
            )
            named = {"port": packet, "ping": _echo(packet)}
            for what, sent in named.items():
                why = "a ping" if what == "ping" else f"port {_UNUSED_PORT}"
                yield _single(
                    facts, Kind.ADDRESS, f"{what}/{text}", client, sent, address, service, f"{why} at {text}"
                )
            for port in facts.state.health_check_ports:
                sent = replace(packet, dport=port)
                yield _single(
                    facts, Kind.HEALTH, f"{text}:{port}", client, sent, address, service,
                    f"health check node port {port} at {text}",
                )  # fmt: skip


def _echo(packet: Packet) -> Packet:
    """Return an echo request with the packet's addresses."""
    four = packet.family.bits == 32
    return replace(
        packet,
        proto=Protocol.ICMP if four else Protocol.ICMPV6,
        sport=None,
        dport=None,
        icmp_type=8 if four else 128,
        icmp_code=0,
        icmp_id=1,
    )


def _source_probes(facts: Facts, virtual_ips: dict[int, Service]) -> Iterator[Probe]:
    """Yield packets from outside whose source is the address of a load balancer."""
    outside, pod = facts.client("outside"), next(_pods(facts), None)
    if outside is None or pod is None:
        return
    for address, service in virtual_ips.items():
        if address in service.external_addresses:
            packet = Packet(
                family=facts.family, src=address, dst=pod, proto=Protocol.TCP, sport=_SOURCE_PORT, dport=8080
            )
            text = format_address(facts.family, address)
            yield _single(
                facts, Kind.SOURCE, text, outside, packet, address, service, f"a packet from {text} to a pod"
            )


def _unassigned_probes(facts: Facts, virtual_ips: dict[int, Service]) -> Iterator[Probe]:
    pod, network = next(_pods(facts), None), facts.service_range
    service = next(iter(virtual_ips.values()), None)
    if pod is None or network is None or service is None:
        return
    used = set(facts.cluster_ips)
    address = next((a for a in range(network.high - 1, network.low, -1) if a not in used), None)
    if address is not None:
        packet = Packet(
            family=facts.family, src=pod, dst=address, proto=Protocol.TCP, sport=_SOURCE_PORT, dport=80
        )
        client = Client("pod", pod, facts.places.behind(pod))
        text = format_address(facts.family, address)
        probe = _single(
            facts, Kind.UNASSIGNED, text, client, packet, address, service, f"{text}, which no service has"
        )
        yield replace(probe, subject="unassigned addresses of the service range", service=None)


def _single(
    facts: Facts,
    kind: Kind,
    about: str,
    client: Client,
    packet: Packet,
    address: int,
    service: Service,
    why: str,
) -> Probe:
    """Return a probe of one packet."""
    return Probe(
        kind=kind,
        flow=Flow(
            id=f"{kind}/{about}/{client.kind}",
            steps=(Send(packet=packet, entry=client.entry),),
            why=why,
            source="detector",
        ),
        client=client,
        address=address,
        subject=facts.label(service),
        service=service,
    )
