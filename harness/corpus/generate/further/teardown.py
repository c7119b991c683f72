"""Endings of connections to services: closed by either side, reset, refused, reopened, and ICMP errors.

Successive services use different kinds of clients. If there are more than :data:`MOST_SERVICES`, an evenly
spread sample is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backends.model.flow import Again, Flow, IcmpError, Reply, Send, Step
from backends.model.packet import Packet
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.further.services import Service, client_packets
from translate.dataclass import replace
from translate.ir import Family, Protocol, TcpFlag

__all__ = ["MOST_SERVICES", "teardown_flows"]

MOST_SERVICES = 64
"""The number of services with flows for their endings."""

_MOST_ENDPOINTS = 4
"""The maximum number of endpoints of a service to reopen: each connection multiplies the outcomes."""

_SPREAD = 3
"""The number of client kinds to choose from: inside the cluster, outside, the node."""

_FIRST_PORT = 30000

_SYN, _RST, _FIN, _ACK = TcpFlag.SYN, TcpFlag.RST, TcpFlag.FIN, TcpFlag.ACK
_OPEN: tuple[Step, ...] = (Reply(), Again())


def teardown_flows(services: Sequence[Service], places: Places) -> Iterator[Flow]:
    """Yield flows with each kind of ending for each service."""
    stride = -(-len(services) // MOST_SERVICES) or 1
    port = _FIRST_PORT
    for number, service in enumerate(services[::stride]):
        clients = list(client_packets(service, places))[:_SPREAD]
        if not clients:
            continue
        client, packet, entry = clients[number % len(clients)]
        for name, why, steps in _endings(service, packet):
            port += 1
            yield Flow(
                id=f"service-{service.port}-{client}-{name}",
                steps=(Send(packet=_from_port(packet, port), entry=entry), *steps),
                why=why,
            )


def _from_port(packet: Packet, port: int) -> Packet:
    if packet.has_ports:
        return replace(packet, sport=port)
    return packet if packet.icmp_id is None else replace(packet, icmp_id=port)


def _endings(service: Service, packet: Packet) -> Iterator[tuple[str, str, tuple[Step, ...]]]:
    """Yield a word for the id, a description, and the steps after the first."""
    ip4 = packet.family is Family.IP
    port_closed = IcmpError(type=3, code=3) if ip4 else IcmpError(type=1, code=4)
    too_big = IcmpError(type=3, code=4) if ip4 else IcmpError(type=2, code=0)
    yield (
        "errors",
        "ICMP errors about the first packet and about its answer",
        (port_closed, Again(), Reply(), too_big),
    )
    if packet.proto != Protocol.TCP:
        return
    fin, rst = _FIN | _ACK, _RST | _ACK
    again: tuple[Step, ...] = (Again(flags=_SYN), Reply(flags=_SYN | _ACK), Again())
    few = len(service.endpoints) <= _MOST_ENDPOINTS
    yield (
        "closed",
        "the client closes, then the server" + ", and the client reuses its port" * few,
        (*_OPEN, Again(flags=fin), Reply(flags=fin), Again(), *(again if few else ())),
    )
    yield (
        "closed-by-server",
        "the server closes first, then the client",
        (*_OPEN, Reply(flags=fin), Again(), Again(flags=fin), Reply()),
    )
    yield (
        "reset",
        "the client resets" + ", and reuses its port" * few,
        (*_OPEN, Again(flags=rst), Reply(), *(again if few else ())),
    )
    yield "reset-by-server", "the server resets", (*_OPEN, Reply(flags=rst), Again())
    yield "refused", "the server port is closed", (Reply(flags=rst), Again())
