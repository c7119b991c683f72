"""Endpoints that reach themselves, and visibility of the masquerade mark (K20-K23; Kubernetes 1.36)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.flow import Flow
from nfparity.assess.difference import ChangedPacket, Claim, Detector, evidence
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Client, Facts
from nfparity.kubeproxy.service import Purpose, Service
from translate.ir import Dnat, Field, FieldTest, Interval, format_address

__all__ = ["HAIRPINS"]


_CLIENTS: Final = 8
"""The number of remote endpoints used as clients of each address of their service."""


def _k20(facts: Facts) -> Iterator[Flow]:
    """Yield flows from pods on other nodes to their own service, which may send them to themselves."""
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
    """Yield networks that distinguish clients: destinations of routes, and networks in rules."""
    yield from dict.fromkeys(r.dst for r in facts.node.main_routes(facts.family))
    values = (
        value
        for rule in facts.ruleset.rules()
        for test in rule.tests
        if isinstance(test, FieldTest) and test.field is Field.SADDR
        for value in test.values
    )
    yield from dict.fromkeys(value for value in values if isinstance(value, Interval) and not value.is_point)


def _spread(networks: tuple[Interval, ...], clients: Iterable[Client]) -> Iterator[Client]:
    """Yield a few clients from many networks, because masquerading may depend on the network."""
    groups: dict[object, dict[int, Client]] = {}
    for client in clients:
        key = client.entry, tuple(client.address in network for network in networks)
        groups.setdefault(key, {}).setdefault(client.address, client)
    rounds = itertools.zip_longest(*(group.values() for group in groups.values()))
    taken = (client for turn in rounds for client in turn if client is not None)
    yield from itertools.islice(taken, _CLIENTS)


def _remote_endpoints(facts: Facts, service: Service) -> Iterator[Client]:
    for endpoint in service.endpoints:
        entry = facts.places.behind(endpoint.address)
        if entry and not endpoint.local:
            yield Client(format_address(facts.family, endpoint.address), endpoint.address, entry)


def _places(facts: Facts, service: Service) -> Iterator[tuple[int, int | None]]:
    """Yield the addresses and ports of a service."""
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
    return Claim(
        subject=facts.label(service), lines=evidence(service.lines_for(Purpose.HAIRPIN)), counted=False
    )


def _lost_masquerade(changed: ChangedPacket) -> bool:
    return (
        changed.after.dst == changed.packet.src
        and not changed.after.snat
        and changed.fate_after is Fate.SERVICE
    )


def _k21(facts: Facts) -> Iterator[Flow]:
    """Yield nothing: the generated corpus contains flows to destinations that other rules translate."""
    return iter(())


def _claim_k21(facts: Facts, changed: ChangedPacket) -> Claim | None:
    if changed.before.snat or not changed.after.snat or changed.before.dst != changed.packet.src:
        return None
    own = facts.index.lines
    matched = (*changed.began, *changed.matched)
    others = [r for r in matched if r.origin.line not in own and any(isinstance(a, Dnat) for a in r.actions)]
    return Claim(subject="another component's translation", lines=evidence(others)) if others else None


def _k22(facts: Facts) -> Iterator[Flow]:
    """Yield flows from local endpoints to their own service, which may send them to themselves."""
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
    """Claim a packet that came back to its sender in iptables mode through a rule that matches the mark."""
    service = facts.by_cluster_ip(changed.packet)
    if service is None or not facts.other_rules.askers:
        return None
    if changed.packet.src not in {e.address for e in service.endpoints}:
        return None
    rules = [rule for rule in facts.other_rules.askers if changed.matched_any([rule.origin])]
    if not rules or not changed.matched_any(line.origin for line in service.lines_for(Purpose.HAIRPIN)):
        return None
    return Claim(subject=facts.label(service), lines=evidence(rules))


def _k23(facts: Facts) -> Iterator[Flow]:
    """Yield nothing: the flows of K06 go to undefined ports from outside."""
    return iter(())


def _claim_k23(facts: Facts, changed: ChangedPacket) -> Claim | None:
    """Claim a packet that has the mark only in nftables mode, and matches a rule that tests the mark."""
    packet = changed.packet
    if (
        packet.dst not in facts.cluster_ips
        or facts.by_cluster_ip(packet) is not None
        or changed.entry is None
    ):
        return None
    if not facts.other_rules.askers or changed.fate_after is Fate.REJECTED:
        return None  # rejected: K06
    names = ", ".join(dict.fromkeys(facts.label(s) for s in facts.at_cluster_ip(packet.dst)))
    return Claim(subject=names, lines=evidence(facts.other_rules.askers))


HAIRPINS = (
    Detector(k="K22", flows=_k22, claims=_claim_k22),
    Detector(k="K23", flows=_k23, claims=_claim_k23),
    Detector(k="K20", flows=_k20, claims=_claim_k20),
    Detector(k="K21", flows=_k21, claims=_claim_k21),
)
