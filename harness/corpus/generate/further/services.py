"""Flows to every service from each kind of client: inside the cluster, outside, the node, its own endpoint.

A service is any destination that a rule translates (its packets match DNAT or REDIRECT).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from backends.model.flow import Again, Flow, Reply, Send
from backends.model.packet import Packet
from harness.corpus.formats.packets import protocol_name
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.goals import FlowGoals
from translate.dataclass import dataclass, replace
from translate.ir import AddressType, Family, format_address

__all__ = [
    "Destination",
    "Service",
    "client_packets",
    "destination",
    "destination_name",
    "service_flows",
    "services_of",
]

Destination = tuple[int, int, object]
"""Protocol, address and port to which a client sends."""

_MOST_ENDPOINTS = 8
_FIRST_PORT = 20000


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The destination that clients use, one packet to it, and the addresses of its endpoints."""

    packet: Packet
    endpoints: tuple[int, ...]

    @property
    def destination(self) -> Destination:
        """The destination to which clients send."""
        return destination(self.packet)

    @property
    def port(self) -> str:
        """The destination in the form used in ids."""
        return destination_name(self.packet)


def services_of(shown: Iterable[FlowGoals]) -> tuple[Service, ...]:
    """Return the services that flows used, by destination."""
    packets: dict[Destination, Packet] = {}
    endpoints: dict[Destination, set[int]] = {}
    for goals in shown:
        for sent in goals.services:
            packets.setdefault(destination(sent.packet), sent.packet)
        for sighting in goals.sightings:
            if sighting.first:
                before, after = sighting.sent.packet, sighting.packet
                if (before.dst, before.dport) != (after.dst, after.dport):
                    endpoints.setdefault(destination(before), set()).add(after.dst)
    return tuple(
        Service(packet=packets[key], endpoints=tuple(sorted(endpoints.get(key, ()))))
        for key in sorted(packets, key=lambda k: (k[0], k[1], str(k[2])))
    )


def destination(packet: Packet) -> Destination:
    """Return the destination of a packet: protocol, address and port."""
    return packet.proto, packet.dst, packet.dport


def destination_name(packet: Packet) -> str:
    """Return the destination of a packet in the form used in ids."""
    name = f"{protocol_name(packet.proto)}-{format_address(packet.family, packet.dst)}"
    return name if packet.dport is None else f"{name}-{packet.dport}"


def service_flows(services: Iterable[Service], places: Places) -> Iterator[tuple[str, Flow]]:
    """Yield a word for the client, and a connection with an answer, for each service and kind of client."""
    number = 0
    for service in services:
        for client, why, source, destination in _clients(service, places):
            number += 1
            entry = places.behind(source)
            packet = _sent_by(service, source, destination)
            port = _FIRST_PORT + number % 10000
            if packet.has_ports:
                packet = replace(packet, sport=port)
            elif packet.icmp_id is not None:
                packet = replace(packet, icmp_id=port)
            if entry != "":
                yield (
                    client,
                    Flow(
                        id=f"service-{service.port}-{client}",
                        steps=(Send(packet=packet, entry=entry), Reply(), Again()),
                        why=f"a service, used {why}",
                    ),
                )


def client_packets(service: Service, places: Places) -> Iterator[tuple[str, Packet, str | None]]:
    """Yield the clients of a service: a word for ids, the first packet and its entry interface."""
    for client, _, source, destination in _clients(service, places):
        entry = places.behind(source)
        if entry != "":
            yield client, _sent_by(service, source, destination), entry


def _sent_by(service: Service, source: int, destination: int) -> Packet:
    return replace(service.packet, src=source, dst=destination, mark=0, bad_checksum=False)


def _clients(service: Service, places: Places) -> Iterator[tuple[str, str, int, int]]:
    """Yield a word for the id, a description, the source and the destination of each client."""
    dst = service.packet.dst
    others = (e for e in places.endpoints if e not in service.endpoints and places.behind(e))
    inside = list(itertools.islice((a for a in itertools.chain(places.inside, others) if a != dst), 1))
    outside = [a for a in places.outside if a != dst]
    if inside:
        yield "inside", "from inside the cluster", inside[0], dst
    if outside:
        yield "outside", "from outside the cluster", outside[0], dst
    loopback = places.kind(dst) is AddressType.LOCAL and dst == places.loopback
    if places.own:
        yield "node", "from the node itself", places.loopback if loopback else places.own[0], dst
    if places.kind(dst) is AddressType.LOCAL and not loopback and places.family is Family.IP:
        yield "localhost", "on the node's loopback address", places.loopback, places.loopback
    if places.kind(dst) is AddressType.LOCAL:
        yield from _elsewhere(inside, outside, places)
    for n, endpoint in enumerate(service.endpoints[:_MOST_ENDPOINTS], 1):
        if endpoint != dst:
            yield f"endpoint{n}", "from an endpoint of its own", endpoint, dst


def _elsewhere(
    inside: Sequence[int], outside: Sequence[int], places: Places
) -> Iterator[tuple[str, str, int, int]]:
    """Yield clients that use the service's port on another host to which the node routes.

    Rules may match a service of the node by its port and ``addrtype LOCAL`` alone.
    """
    why = "on another host"
    if inside and outside:
        yield "elsewhere-inside", f"{why} inside the cluster", outside[0], inside[0]
        yield "elsewhere-outside", f"{why} outside the cluster", inside[0], outside[0]
    if places.own and outside:
        yield "elsewhere-node", f"{why}, from the node itself", places.own[0], outside[0]
