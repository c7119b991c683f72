"""A cluster as one kube-proxy sees it: services, their endpoints, and kube-proxy's node."""

from __future__ import annotations

from dataclasses import dataclass

from backends.model.node import Node
from nfparity.kubeproxy import ChainKind, Protocol, chain_name
from translate.ir import Family, Interval, format_address

__all__ = ["Cluster", "Endpoint", "Protocol", "Service", "prefix_text"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A ready endpoint of one port. ``local``: it runs on the node of the rules."""

    address: int
    port: int
    local: bool = False

    def text(self, family: Family) -> str:
        """Return ``address:port`` as ``--to-destination`` takes it."""
        address = format_address(family, self.address)
        return f"{address}:{self.port}" if family is Family.IP else f"[{address}]:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One port of a Service; ``name`` is ``namespace/service:port``, as in comments and hashes.

    ``affinity`` is ``sessionAffinity: ClientIP``'s timeout in seconds, 0 for none. ``external_local`` and
    ``internal_local`` are the traffic policies; ``source_ranges`` are ``loadBalancerSourceRanges``.
    """

    name: str
    cluster_ip: int
    port: int
    protocol: Protocol = Protocol.TCP
    endpoints: tuple[Endpoint, ...] = ()
    node_port: int | None = None
    external_ips: tuple[int, ...] = ()
    load_balancer_ips: tuple[int, ...] = ()
    source_ranges: tuple[Interval, ...] = ()
    affinity: int = 0
    external_local: bool = False
    internal_local: bool = False
    health_check_port: int | None = None

    @property
    def external(self) -> bool:
        """True if the service can be reached from outside the cluster."""
        return bool(self.node_port or self.external_ips or self.load_balancer_ips)

    @property
    def local_endpoints(self) -> tuple[Endpoint, ...]:
        """The endpoints on this node."""
        return tuple(e for e in self.endpoints if e.local)

    def chain(self, kind: str) -> str:
        """Return the name of a chain of the service, such as ``KUBE-SVC-…``; ``kind`` is SVC, SVL, EXT or
        FW.
        """
        return chain_name(ChainKind(kind), self.name, self.protocol)

    def endpoint_chain(self, endpoint: str) -> str:
        """Return the name of the ``KUBE-SEP-…`` chain of an endpoint, given as its text."""
        return chain_name(ChainKind.SEP, self.name, self.protocol, endpoint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The cluster as one kube-proxy sees it in one family.

    ``pods`` is ``--cluster-cidr``; ``node_ip`` is the address of kube-proxy's node. If ``comments`` is None,
    comments are written unless there are more than 1000 endpoints, as by kube-proxy
    (``largeClusterEndpointsThreshold``). ``node`` is a node on which the rules can run.
    """

    family: Family
    services: tuple[Service, ...]
    pods: Interval
    node_ip: int
    node: Node
    masquerade_all: bool = False
    localhost_node_ports: bool = True
    masquerade_agent: bool = False
    comments: bool | None = None

    @property
    def with_comments(self) -> bool:
        """True if the rules of endpoints carry comments."""
        if self.comments is not None:
            return self.comments
        return sum(len(s.endpoints) for s in self.services) <= 1000


def prefix_text(family: Family, network: Interval) -> str:
    """Return a network as ``address/length``."""
    return f"{format_address(family, network.low)}/{network.prefix_length(family.bits)}"
