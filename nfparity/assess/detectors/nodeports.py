"""Node ports: the addresses at which they answer, and those without endpoints (K01, K02, K17, K31)."""

from __future__ import annotations

from collections.abc import Iterator

from backends.model.flow import Flow
from nfparity.assess.difference import ChangedPacket, Claim, Detector, evidence
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Client, Facts
from nfparity.kubeproxy.service import Line, Purpose, Service
from translate.ir import Family, format_address

__all__ = ["NODE_PORTS"]

_REFUSALS = (Purpose.NO_ENDPOINTS, Purpose.NO_LOCAL_ENDPOINTS)


def _flow(facts: Facts, k: str, service: Service, client: Client, address: int, why: str) -> Flow:
    packet = facts.packet(client, address, service, service.node_port)
    about = f"{facts.label(service)}/{format_address(facts.family, address)}"
    return facts.flow(k, client, packet, about=about, why=why)


def _is_refused(service: Service) -> bool:
    return any(line.part in _REFUSALS for line in service.lines)


def _on_addresses(facts: Facts, k: str, *, refused: bool) -> Iterator[Flow]:
    for service in facts.services:
        if service.node_port is None or _is_refused(service) is not refused:
            continue
        for address in facts.places.own:
            for client in facts.clients():
                source = client
                if client.kind == "node" and client.address != address:
                    source = Client("node", address, None)  # it talks to itself
                yield _flow(facts, k, service, source, address, "a node port on one of the node's addresses")


def _on_loopback(facts: Facts, k: str, *, refused: bool) -> Iterator[Flow]:
    loopback = facts.places.loopback
    if facts.family is not Family.IP:
        return
    for service in facts.services:
        if service.node_port is not None and _is_refused(service) is refused:
            client = Client("node", loopback, None)
            yield _flow(facts, k, service, client, loopback, "a node port on the node's loopback address")


def _k01(facts: Facts) -> Iterator[Flow]:
    yield from _on_addresses(facts, "K01", refused=False)


def _k02(facts: Facts) -> Iterator[Flow]:
    yield from _on_loopback(facts, "K02", refused=False)


def _k17(facts: Facts) -> Iterator[Flow]:
    yield from _on_addresses(facts, "K17", refused=True)


def _k31(facts: Facts) -> Iterator[Flow]:
    yield from _on_loopback(facts, "K31", refused=True)


def _claim(facts: Facts, changed: ChangedPacket, *, loopback: bool, refused: bool) -> Claim | None:
    service = facts.by_node_port(changed.packet)
    if service is None or facts.is_loopback(changed.packet.dst) is not loopback:
        return None
    if not loopback and not facts.is_own(changed.packet.dst):
        return None
    if (
        changed.fate_before in (Fate.DROPPED, Fate.REJECTED)
    ) is not refused or changed.fate_after is not Fate.LOCAL:
        return None
    parts: tuple[Purpose, ...] = (Purpose.NODE_PORT, Purpose.LOCALHOST_NODE_PORT)
    if refused:
        parts = _REFUSALS
    elif loopback and any(service.lines_for(Purpose.LOCALHOST_NODE_PORT)):
        parts = (Purpose.LOCALHOST_NODE_PORT,)
    return Claim(subject=facts.label(service), lines=evidence(_of_node_port(service, parts)))


def _of_node_port(service: Service, parts: tuple[Purpose, ...]) -> Iterator[Line]:
    """Yield the service's lines for some purposes that test the node port but no address."""
    return (line for line in service.lines_for(*parts) if line.address is None)


NODE_PORTS = (
    Detector(k="K02", flows=_k02, claims=lambda f, s: _claim(f, s, loopback=True, refused=False)),
    Detector(k="K31", flows=_k31, claims=lambda f, s: _claim(f, s, loopback=True, refused=True)),
    Detector(k="K01", flows=_k01, claims=lambda f, s: _claim(f, s, loopback=False, refused=False)),
    Detector(k="K17", flows=_k17, claims=lambda f, s: _claim(f, s, loopback=False, refused=True)),
)
