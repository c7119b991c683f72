"""Names and other facts of services, from the API objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nfparity.kubeproxy.chains import Protocol, name_hash
from nfparity.kubeproxy.objects import ApiObjects
from nfparity.kubeproxy.service import Endpoint, Service
from translate.dataclass import replace
from translate.ir import Family

__all__ = ["completed", "names_of_chains"]

Place = tuple[Protocol, int | None, int]


def names_of_chains(objects: ApiObjects) -> dict[str, tuple[str, Protocol]]:
    """Return the names of services by the hash in the names of their chains."""
    return {name_hash(name + protocol): (name, protocol) for name, protocol in objects.names()}


def completed(services: Iterable[Service], objects: ApiObjects, family: Family) -> list[Service]:
    """Return the services with their names from the objects, and all facts that no rule shows.

    Rules that only the objects assign to the same service become one service. The node is the only Node among
    the objects, or the Node of an endpoint that is known to be local.
    """
    services = list(services)
    described = objects.of(family, _node(services, objects, family))
    by_name = {(s.name, s.protocol): s for s in described if s.name is not None}
    by_place = {place: s for s in described for place in _places(s)}
    grouped: dict[tuple[str, Protocol], Service] = {}
    rest = []
    for service in services:
        full = None if service.name is None else by_name.get((service.name, service.protocol))
        full = full or next((by_place[p] for p in _places(service) if p in by_place), None)
        if full is None or full.name is None:
            rest.append(service)
            continue
        key = (full.name, full.protocol)
        before = grouped.get(key)
        grouped[key] = _filled(service if before is None else _joined(before, service), full)
    return sorted(grouped.values(), key=lambda s: (s.name or "", s.protocol)) + rest


def _places(service: Service) -> Iterator[Place]:
    if service.port is not None:
        addresses = (service.cluster_ip, *service.external_addresses)
        for address in addresses:
            if address is not None:
                yield service.protocol, address, service.port
    if service.node_port is not None:
        yield service.protocol, None, service.node_port


def _joined(a: Service, b: Service) -> Service:
    """Return the union of two parts of one service, neither of which has chains."""
    return replace(
        a,
        cluster_ip=b.cluster_ip if a.cluster_ip is None else a.cluster_ip,
        port=b.port if a.port is None else a.port,
        node_port=b.node_port if a.node_port is None else a.node_port,
        external_ips=tuple(sorted({*a.external_ips, *b.external_ips})),
        load_balancer_ips=tuple(sorted({*a.load_balancer_ips, *b.load_balancer_ips})),
        outside_ips=tuple(sorted({*a.outside_ips, *b.outside_ips})),
        source_ranges=(a if a.external else b).source_ranges,
        external_local=(a if a.external else b).external_local,
        internal_local=(b if a.cluster_ip is None else a).internal_local,
        endpoints=a.endpoints or b.endpoints,
        endpoints_elsewhere=a.endpoints_elsewhere or b.endpoints_elsewhere,
        hash=a.hash or b.hash,
        lines=tuple(sorted((*a.lines, *b.lines), key=lambda line: line.origin.line)),
    )


def _filled(read: Service, described: Service) -> Service:
    """Return the service with the values from rules, completed by values from the objects."""
    external, balancers = set(described.external_ips), set(described.load_balancer_ips)
    places = {(e.address, e.port): e.local for e in described.endpoints}
    return replace(
        read,
        name=described.name,
        cluster_ip=described.cluster_ip if read.cluster_ip is None else read.cluster_ip,
        port=described.port if read.port is None else read.port,
        external_ips=tuple(sorted({*read.external_ips, *(a for a in read.outside_ips if a in external)})),
        load_balancer_ips=tuple(
            sorted({*read.load_balancer_ips, *(a for a in read.outside_ips if a in balancers - external)})
        ),
        outside_ips=tuple(a for a in read.outside_ips if a not in external | balancers),
        source_ranges=described.source_ranges if read.source_ranges is None else read.source_ranges,
        allows_node=described.allows_node if read.source_ranges is None else read.allows_node,
        affinity=described.affinity if read.affinity is None else read.affinity,
        external_local=described.external_local if read.external_local is None else read.external_local,
        internal_local=described.internal_local if read.internal_local is None else read.internal_local,
        health_check_port=read.health_check_port or described.health_check_port,
        endpoints=tuple(
            Endpoint(e.address, e.port, places.get((e.address, e.port)), e.draining) if e.local is None else e
            for e in read.endpoints
        ),
    )


def _node(services: Iterable[Service], objects: ApiObjects, family: Family) -> str | None:
    """Return the node of the endpoints that are known to be local, if it is unique."""
    local = {e.address for s in services for e in s.endpoints if e.local}
    names = {name for address, name in objects.places(family) if address in local}
    return next(iter(names)) if len(names) == 1 else None
