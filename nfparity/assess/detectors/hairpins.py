"""Endpoints that reach themselves, and who sees the masquerade mark (K20 to K23; since Kubernetes 1.36)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.flow import Flow
from nfparity.assess.difference import ChangedPacket, Claim, Detector, evidence
from nfparity.assess.facts import Client, Facts
from nfparity.assess.fate import Fate
from nfparity.kubeproxy.service import Part, Service
from translate.ir import Dnat, Field, FieldTest, Interval, format_address

__all__ = ["HAIRPINS"]


_CLIENTS: Final = 8
"""So many remote endpoints of a service ask each of its places: those behind different networks first."""


def _k20(facts: Facts) -> Iterator[Flow]:
    """Pods of other nodes come with their own address, and may be sent to themselves."""
    networks = tuple(_networks(facts))
    for service in facts.services:
        for client in _spread(networks, _remote_endpoints(facts, service)):
            for address, port in _places(facts, service):
                packet = facts.packet(client, address, service, port)
                about = f"{facts.label(service)}/{format_address(facts.family, address)}:{port}"
                yield facts.flow(
                    "K20", client, packet, about=about, why="a remote pod of the service uses it"
                )


def _networks(facts: Facts) -> Iterator[Interval]:
    """Keys that distinguish clients apart from their own addresses: routes, and networks in rules."""
    yield from dict.fromkeys(r.dst for r in facts.node.routes if r.family is facts.family)
    asked = (
        value
        for rule in facts.ruleset.rules()
        for test in rule.tests
        if isinstance(test, FieldTest) and test.field is Field.SADDR
        for value in test.values
    )
    yield from dict.fromkeys(one for one in asked if isinstance(one, Interval) and not one.is_point)


def _spread(networks: tuple[Interval, ...], clients: Iterable[Client]) -> Iterator[Client]:
    """Yield a few of the clients. Not each keeps its address at each place: that depends on its network."""
    groups: dict[object, dict[int, Client]] = {}
    for client in clients:
        key = client.entry, tuple(client.address in network for network in networks)
        groups.setdefault(key, {}).setdefault(client.address, client)
    rounds = itertools.zip_longest(*(group.values() for group in groups.values()))
    taken = (client for one in rounds for client in one if client is not None)
    yield from itertools.islice(taken, _CLIENTS)


def _remote_endpoints(facts: Facts, service: Service) -> Iterator[Client]:
    for endpoint in service.endpoints:
        entry = facts.places.behind(endpoint.address)
        if entry and not endpoint.local:
            yield Client(format_address(facts.family, endpoint.address), endpoint.address, entry)


def _places(facts: Facts, service: Service) -> Iterator[tuple[int, int | None]]:
    """The addresses and ports of a service."""
    yield from ((address, service.port) for address in service.external_addresses)
    if service.cluster_ip is not None:
        yield service.cluster_ip, service.port
    if service.node_port is not None and facts.places.own:
        yield facts.places.own[0], service.node_port


def _claim_k20(facts: Facts, changed: ChangedPacket) -> Claim | None:
    packet = changed.packet
    service = facts.by_cluster_ip(packet) or facts.by_external(packet) or facts.by_node_port(packet)
    if service is None or not _lost_masquerade(changed):
        return None
    return Claim(subject=facts.label(service), lines=evidence(service.lines_for(Part.HAIRPIN)), counted=False)


def _lost_masquerade(changed: ChangedPacket) -> bool:
    return (
        changed.after.dst == changed.packet.src
        and not changed.after.snat
        and changed.fate_after is Fate.SERVICE
    )


def _k21(facts: Facts) -> Iterator[Flow]:
    """None of its own: whoever else translates destinations is in the corpus made from the rules."""
    return iter(())


def _claim_k21(facts: Facts, changed: ChangedPacket) -> Claim | None:
    if changed.before.snat or not changed.after.snat or changed.before.dst != changed.packet.src:
        return None
    own = facts.index.lines
    met = (*changed.began, *changed.met)
    others = [r for r in met if r.origin.line not in own and any(isinstance(a, Dnat) for a in r.actions)]
    return Claim(subject="another component's translation", lines=evidence(others)) if others else None


def _k22(facts: Facts) -> Iterator[Flow]:
    """Every local endpoint uses its own service, which may send it to itself."""
    if not facts.other_rules.askers:
        return
    for service in facts.services:
        for endpoint in service.endpoints:
            entry = facts.places.behind(endpoint.address)
            if not entry or service.cluster_ip is None:
                continue
            client = Client(f"from-{format_address(facts.family, endpoint.address)}", endpoint.address, entry)
            packet = facts.packet(client, service.cluster_ip, service, service.port)
            yield facts.flow(
                "K22", client, packet, about=facts.label(service), why="an endpoint of its own service"
            )


def _claim_k22(facts: Facts, changed: ChangedPacket) -> Claim | None:
    """In iptables mode it came back to its sender through a rule that matches on the mark."""
    service = facts.by_cluster_ip(changed.packet)
    if service is None or not facts.other_rules.askers:
        return None
    if changed.packet.src not in {e.address for e in service.endpoints}:
        return None
    asked = [rule for rule in facts.other_rules.askers if changed.met_any([rule.origin])]
    if not asked or not changed.met_any(line.origin for line in service.lines_for(Part.HAIRPIN)):
        return None
    return Claim(subject=facts.label(service), lines=evidence(asked))


def _k23(facts: Facts) -> Iterator[Flow]:
    """None of its own: the flows of K06 go to undefined ports from outside."""
    return iter(())


def _claim_k23(facts: Facts, changed: ChangedPacket) -> Claim | None:
    """It matches a rule on the mark, which it has in nftables mode only."""
    packet = changed.packet
    if (
        packet.dst not in facts.cluster_ips
        or facts.by_cluster_ip(packet) is not None
        or changed.entry is None
    ):
        return None
    if not facts.other_rules.askers or changed.fate_after is Fate.REJECTED:
        return None  # refused as K06 says
    names = ", ".join(dict.fromkeys(facts.label(s) for s in facts.at_cluster_ip(packet.dst)))
    return Claim(subject=names, lines=evidence(facts.other_rules.askers))


HAIRPINS = (
    Detector(k="K22", flows=_k22, claims=_claim_k22),
    Detector(k="K23", flows=_k23, claims=_claim_k23),
    Detector(k="K20", flows=_k20, claims=_claim_k20),
    Detector(k="K21", flows=_k21, claims=_claim_k21),
)
