"""A service of one kube-proxy, with the facts that its rules show."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from nfparity.kubeproxy.chains import Protocol
from translate.dataclass import dataclass, field
from translate.ir import Family, Interval, Origin, TableName, format_address

__all__ = ["Endpoint", "Line", "Purpose", "Service"]


class Purpose(StrEnum):
    """The purpose of a rule of kube-proxy."""

    CLUSTER_IP = "cluster IP"
    EXTERNAL_IP = "external IP"
    LOAD_BALANCER_IP = "load balancer IP"
    OUTSIDE_IP = "external or load balancer IP"
    NODE_PORT = "node port"
    LOCALHOST_NODE_PORT = "node port at localhost, counted"
    SOURCE_RANGE = "allowed source range"
    OUT_OF_RANGE = "source out of range"
    HEALTH_CHECK = "health check node port"
    NO_ENDPOINTS = "no endpoints"
    NO_LOCAL_ENDPOINTS = "no local endpoints"
    MASQUERADE = "masquerade"
    EXTERNAL = "external destinations"
    BALANCE = "choice of endpoint"
    AFFINITY = "session affinity"
    HAIRPIN = "hairpin"
    DNAT = "endpoint"
    # Rules that belong to no service:
    ENTRANCE = "entrance to kube-proxy's chains"
    NODE_PORTS = "node ports"
    MARK = "masquerade mark"
    POSTROUTING = "postrouting"
    DROP_INVALID = "drop of invalid packets"
    ACCEPT_MARKED = "forwarding of marked packets"
    ACCEPT_RELATED = "forwarding of known connections"
    LOCALNET_GUARD = "guard of localhost"
    MARK_DROP = "mark and drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A rule of the dump and its purpose. ``packets`` is None in a dump without counters.

    ``address`` is the destination address that the rule matches, if any.
    """

    part: Purpose
    table: TableName
    chain: str
    origin: Origin
    packets: int | None = None
    address: int | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of one service port. ``local`` is true if the endpoint is on this node, None if unknown.

    An endpoint is local if its EndpointSlice names the node. The EndpointSlice of the API server names no
    node, so the API server's endpoint is never local, even on its own node. ``draining``: it is terminating
    and used only for traffic with policy Local, because no ready endpoint is on this node.
    """

    address: int
    port: int
    local: bool | None = None
    draining: bool = False

    def text(self, family: Family) -> str:
        """Return ``address:port`` as for ``--to-destination``."""
        address = format_address(family, self.address)
        return f"{address}:{self.port}" if family is Family.IP else f"[{address}]:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One port of a Service in one family. None always means unknown, never absent.

    ``name`` is ``namespace/service:port``, or ``namespace/service`` if the port has no name.
    ``outside_ips`` are addresses that may be external or load balancer IPs.
    ``source_ranges`` are ``loadBalancerSourceRanges``. ``allows_node``: the node is in one of them, so the
    load balancer addresses are allowed sources, too (the node's own packets to them have these sources).
    ``affinity`` is ``sessionAffinity: ClientIP``'s timeout in seconds, 0 for none; ``external_local`` and
    ``internal_local`` are the traffic policies.
    ``endpoints`` are in the order of the rules that lead to them. ``endpoints_elsewhere``: there are
    endpoints on other nodes, without rules. ``hash`` is the suffix of its chains, or None without chains.
    If the only rule of a service refuses its node port, ``cluster_ip`` and ``port`` are None.
    """

    name: str | None
    protocol: Protocol
    cluster_ip: int | None = None
    port: int | None = None
    endpoints: tuple[Endpoint, ...] = ()
    endpoints_elsewhere: bool = False
    node_port: int | None = None
    external_ips: tuple[int, ...] = ()
    load_balancer_ips: tuple[int, ...] = ()
    outside_ips: tuple[int, ...] = ()
    source_ranges: tuple[Interval, ...] | None = ()
    allows_node: bool = False
    affinity: int | None = 0
    external_local: bool | None = False
    internal_local: bool | None = False
    health_check_port: int | None = None
    hash: str | None = field(default=None, compare=False)
    lines: tuple[Line, ...] = field(default=(), compare=False)

    @property
    def external(self) -> bool:
        """True if the service can be reached from outside the cluster."""
        return bool(self.node_port or self.external_addresses)

    @property
    def external_addresses(self) -> tuple[int, ...]:
        """Every address except the cluster IP at which the service answers on its own port."""
        return (*self.external_ips, *self.load_balancer_ips, *self.outside_ips)

    @property
    def cluster_endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints for traffic with policy Cluster."""
        return tuple(e for e in self.endpoints if not e.draining)

    def lines_for(self, *parts: Purpose) -> Iterator[Line]:
        """Yield the service's rules for any of ``parts``."""
        return (line for line in self.lines if line.part in parts)

    def label(self, family: Family) -> str:
        """Return the service's name, or the address and port."""
        if self.name is not None:
            return self.name
        addresses = (*(() if self.cluster_ip is None else (self.cluster_ip,)), *self.external_addresses)
        if addresses and self.port is not None:
            return f"{Endpoint(addresses[0], self.port).text(family)}/{self.protocol}"
        if self.node_port is not None:
            return f"node port {self.node_port}/{self.protocol}"
        return f"health check node port {self.health_check_port}/{self.protocol}"
