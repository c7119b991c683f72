"""Flows that use every service of a cluster, made from the cluster alone.

The rules are not evaluated, so flows for ten thousand services take only a moment. Each destination of a
service is used from a pod, from outside of the cluster and from the node. The cluster IP of every fourth
service is also used by the service's own endpoint. A load balancer is used from an allowed source and from
another one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from backends.model.flow import Flow, Reply, Send
from backends.model.packet import Packet
from harness.corpus.formats.entry import entry_of
from tests.lab.kuberules.cluster import Cluster, Protocol, Service
from translate.ir import Family, Interval, format_address, parse_address
from translate.ir import Protocol as Number

__all__ = ["service_uses"]

_OUTSIDE_HOSTS: Final = {
    Family.IP: ("198.51.100.7", "203.0.113.7"),
    Family.IP6: ("2001:db8:100::7", "2001:db8:ffff::7"),
}
"""Hosts outside of the cluster: the first is in the usual range of a load balancer, the other in none."""

_NUMBERS: Final = {Protocol.TCP: Number.TCP, Protocol.UDP: Number.UDP, Protocol.SCTP: Number.SCTP}

_SOURCE_PORTS: Final = Interval(33000, 65000)
"""Source ports that are neither node ports nor ports of services, so that connections do not collide."""

_HAIRPINS: Final = 4
"""The number of services that are also used by their own endpoint."""

_POD: Final = 230
"""The number of the client pod; endpoints have lower numbers."""


def service_uses(cluster: Cluster) -> Iterator[Flow]:
    """Yield flows with a connection's first packet and its answer; ids are unique."""
    return _Uses(cluster).flows()


class _Uses:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._family = cluster.family
        self._node = cluster.node
        self._pod = cluster.pods.low + _POD
        near, far = (parse_address(cluster.family, text) for text in _OUTSIDE_HOSTS[cluster.family])
        self._near, self._far = near, far
        self._entries: dict[int, str | None] = {}
        self._ports = itertools.cycle(range(_SOURCE_PORTS.low, _SOURCE_PORTS.high + 1))

    def flows(self) -> Iterator[Flow]:
        for n, service in enumerate(self._cluster.services):
            yield from self._cluster_ip(service)
            if n % _HAIRPINS == 0:
                yield from self._hairpin(service)
            yield from self._external(service)
            yield from self._node_port(service)

    def _cluster_ip(self, s: Service) -> Iterator[Flow]:
        what = "cluster-ip"
        yield self._flow(s, what, "pod", self._pod, s.cluster_ip, s.port, again=bool(s.affinity))
        yield self._flow(s, what, "outside", self._far, s.cluster_ip, s.port)
        yield self._flow(s, what, "node", self._cluster.node_ip, s.cluster_ip, s.port)

    def _hairpin(self, s: Service) -> Iterator[Flow]:
        for endpoint in (s.local_endpoints or s.endpoints)[:1]:
            yield self._flow(s, "cluster-ip", "endpoint", endpoint.address, s.cluster_ip, s.port)

    def _external(self, s: Service) -> Iterator[Flow]:
        for address in (*s.external_ips, *s.load_balancer_ips):
            what = f"at-{format_address(self._family, address)}"
            yield self._flow(s, what, "pod", self._pod, address, s.port)
            yield self._flow(s, what, "outside", self._near, address, s.port, again=bool(s.affinity))
            if s.source_ranges:
                yield self._flow(s, what, "stranger", self._far, address, s.port)
            yield self._flow(s, what, "node", self._cluster.node_ip, address, s.port)

    def _node_port(self, s: Service) -> Iterator[Flow]:
        here = self._cluster.node_ip
        if s.node_port:
            for client_kind, client in (("pod", self._pod), ("outside", self._far), ("node", here)):
                yield self._flow(s, "node-port", client_kind, client, here, s.node_port)
            if self._family is Family.IP:
                loopback = 0x7F000001
                yield self._flow(s, "node-port", "localhost", loopback, loopback, s.node_port)
        if s.health_check_port:
            yield self._flow(s, "health", "outside", self._far, here, s.health_check_port, Number.TCP)

    def _flow(
        self,
        s: Service,
        what: str,
        client_kind: str,
        client: int,
        to: int,
        port: int,
        proto: Number | None = None,
        *,
        again: bool = False,
    ) -> Flow:
        """Return a flow with a connection; ``again`` adds a second one, which affinity sends to the same
        endpoint.
        """
        packet = Packet(
            family=self._family,
            src=client,
            dst=to,
            proto=_NUMBERS[s.protocol] if proto is None else proto,
            sport=next(self._ports),
            dport=port,
        )
        sends = [packet, replace(packet, sport=next(self._ports))] if again else [packet]
        entry = self._behind(client)
        steps = (step for sent in sends for step in (Send(packet=sent, entry=entry), Reply()))
        return Flow(id=f"{s.name}-{s.protocol}/{what}/{client_kind}", steps=tuple(steps))

    def _behind(self, client: int) -> str | None:
        if client not in self._entries:
            self._entries[client] = entry_of(self._node, self._family, client)
        return self._entries[client]
