"""Drafts of services, which collect facts while rules are read, and the services made from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.service import Endpoint, Line, Purpose, Service
from translate.dataclass import dataclass, field
from translate.ir import Interval, Rule, TableName

__all__ = ["ServiceDraft", "line_of", "name_in"]

_NAME: Final = re.compile(r"(?<![\w./-])[a-z0-9][a-z0-9.-]*/[a-z0-9][a-z0-9.-]*(?::[a-z0-9-]+)?(?![\w/])")
"""``namespace/service:port`` in a comment; namespaces and services are DNS labels, ports have names of
lower case letters, digits and hyphens (``ServicePortName.String``)."""


def name_in(comment: str | None) -> str | None:
    """Return the service name in a comment of kube-proxy."""
    if comment is None or "/" not in comment:
        return None
    match = _NAME.search(comment)
    return match[0] if match else None


def line_of(rule: Rule, part: Purpose, table: TableName, chain: str, address: int | None = None) -> Line:
    """Return the record of a rule that was understood."""
    packets = None if rule.counters is None else rule.counters.packets
    return Line(part=part, table=table, chain=chain, origin=rule.origin, packets=packets, address=address)


@dataclass(slots=True, kw_only=True)
class ServiceDraft:
    """An incomplete service. ``seps`` are all SEP chains, ``local_seps`` those of endpoints on this node."""

    hash: str | None = None
    name: str | None = None
    protocol: Protocol | None = None
    cluster_ip: int | None = None
    port: int | None = None
    node_port: int | None = None
    health_check_port: int | None = None
    external_ips: list[int] = field(default_factory=list)
    load_balancer_ips: list[int] = field(default_factory=list)
    outside_ips: list[int] = field(default_factory=list)
    ranges: list[Interval] | None = None
    affinity: int | None = None
    external_local: bool | None = None
    internal_local: bool | None = None
    seps: list[str] = field(default_factory=list)
    local_seps: list[str] | None = None
    endpoints_elsewhere: bool = False
    lines: list[Line] = field(default_factory=list)

    def name_from(self, comment: str | None) -> None:
        """Set the name from a comment, if it is not known yet."""
        if self.name is None:
            self.name = name_in(comment)

    def place(self, protocol: Protocol | None, port: int | None = None) -> bool:
        """Set protocol and port; return False if they contradict known values."""
        if protocol is None or self.protocol not in (None, protocol):
            return False
        if port is not None and self.port not in (None, port):
            return False
        self.protocol = protocol
        self.port = self.port if port is None else port
        return True

    def finish(self, endpoint: Callable[[str], Endpoint | None]) -> Service | None:
        """Return the service; None if its protocol is not known."""
        if self.protocol is None:
            return None
        external = bool(self.node_port or self.external_ips or self.load_balancer_ips or self.outside_ips)
        balanced = bool(self.external_ips or self.load_balancer_ips or self.outside_ips)
        ranges: tuple[Interval, ...] | None = None
        allows_node = False
        if self.ranges is not None:
            own = set(self.load_balancer_ips)
            ranges = tuple(r for r in self.ranges if not (r.is_point and r.low in own))
            allows_node = len(ranges) < len(self.ranges)
        elif (not self._is_anonymous() and not balanced) or (
            self.hash is not None and not self._refused_outside()
        ):
            ranges = ()
        return Service(
            name=self.name,
            protocol=self.protocol,
            cluster_ip=self.cluster_ip,
            port=self.port,
            endpoints=self._endpoints(endpoint),
            endpoints_elsewhere=self.endpoints_elsewhere and not self.seps and not self.local_seps,
            node_port=self.node_port,
            external_ips=tuple(sorted(self.external_ips)),
            load_balancer_ips=tuple(sorted(self.load_balancer_ips)),
            outside_ips=tuple(sorted(self.outside_ips)),
            source_ranges=ranges,
            allows_node=allows_node,
            affinity=self.affinity,
            external_local=self.external_local if external or self._is_anonymous() else False,
            internal_local=self.internal_local,
            health_check_port=self.health_check_port,
            hash=self.hash,
            lines=tuple(sorted(self.lines, key=lambda line: line.origin.line)),
        )

    def _is_anonymous(self) -> bool:
        """Return whether the service has neither a name nor a hash to distinguish it from others."""
        return self.name is None and self.hash is None

    def _refused_outside(self) -> bool:
        """Return whether no nat rule is for an external address; the source ranges are then unknown."""
        entrances = (Purpose.EXTERNAL_IP, Purpose.LOAD_BALANCER_IP, Purpose.OUTSIDE_IP)
        return not any(line.part in entrances and line.table is TableName.NAT for line in self.lines)

    def _endpoints(self, endpoint: Callable[[str], Endpoint | None]) -> tuple[Endpoint, ...]:
        local = None if self.local_seps is None else set(self.local_seps)
        endpoints = []
        for chain in self.seps:
            place = endpoint(chain)
            if place is not None:
                endpoints.append(
                    Endpoint(place.address, place.port, None if local is None else chain in local)
                )
        seps = set(self.seps)
        for chain in self.local_seps or ():
            place = endpoint(chain)
            if chain not in seps and place is not None:
                # If there are ready endpoints elsewhere, an endpoint only in the local chain is terminating.
                draining = bool(self.seps)
                endpoints.append(Endpoint(place.address, place.port, local=True, draining=draining))
        return tuple(endpoints)
