"""Recovery of kube-proxy's state from a ruleset of its iptables mode.

Rules are recognised by their matches and targets. Comments only give names, and distinguish external IPs from
load balancer IPs. Every rule in a chain of kube-proxy is either recorded with its purpose, or listed in the
remainder. Nothing is inferred from a rule that was understood only in part.
"""

from __future__ import annotations

from typing import Final

from backends.model.ipvs import IpvsTable
from nfparity.kubeproxy.naming import completed, names_of_chains
from nfparity.kubeproxy.objects import ApiObjects
from nfparity.kubeproxy.rules.common_chains import read_shared
from nfparity.kubeproxy.rules.filters import read_filters
from nfparity.kubeproxy.rules.ipvs import ipvs_services, is_ipvs
from nfparity.kubeproxy.rules.reading import Reading
from nfparity.kubeproxy.rules.service_dispatch import SERVICE_CHAIN, read_service_dispatch
from nfparity.kubeproxy.rules.serving import read_off_cluster_marks, read_service_chains
from nfparity.kubeproxy.service import Endpoint, Line, Service
from nfparity.kubeproxy.state import KubeProxyState, Mode, Remainder
from translate.collector import collector_paused
from translate.dataclass import replace
from translate.ir import Ruleset

__all__ = ["recover"]

_API_SERVER: Final = "default/kubernetes:"
"""The prefix of the API server's service names; the EndpointSlice of this service names no node."""


@collector_paused()
def recover(
    ruleset: Ruleset, objects: ApiObjects | None = None, *, ipvs: IpvsTable | None = None
) -> KubeProxyState:
    """Return the state of the kube-proxy that wrote these rules.

    ``ipvs`` are the virtual services of a node in ipvs mode, which have the endpoints.

    ``objects`` are the Services and EndpointSlices of the cluster. They provide names that are missing in
    comments (the chain name is a hash of the service name), and facts that no rule shows; facts from rules
    have priority. A ruleset without kube-proxy's rules gives a state of mode NONE without facts.
    """
    if is_ipvs(ruleset):
        return _ipvs(ruleset, objects, ipvs)
    if not any(c.name == SERVICE_CHAIN for t in ruleset.tables for c in t.chains):
        return KubeProxyState(family=ruleset.family, mode=Mode.NONE)
    reading = Reading(ruleset)
    if objects is not None:
        reading.known_names = names_of_chains(objects)
    read_shared(reading)
    read_service_chains(reading)
    read_service_dispatch(reading)
    read_off_cluster_marks(reading)
    read_filters(reading)
    services, lost = _services(reading)
    if objects is not None:
        services = completed(services, objects, ruleset.family)
    pods = max(reading.pods, key=lambda p: reading.pods[p], default=None)
    return KubeProxyState(
        family=ruleset.family,
        mode=Mode.IPTABLES,
        services=_placed(services),
        pods=pods,
        masquerade_all=reading.masquerade_all,
        mark=reading.mark,
        fully_random=reading.fully_random,
        node_port_addresses=_listed(reading.node_port_addresses),
        localhost_node_ports=reading.localhost_node_ports,
        health_check_ports=tuple(sorted(reading.health_check_ports)),
        lines=tuple(reading.lines),
        remainder=(*reading.remainder, *lost),
        notes=_notes(reading),
    )


def _listed(addresses: list[int] | None) -> tuple[int, ...] | None:
    return None if addresses is None else tuple(sorted(addresses))


def _notes(reading: Reading) -> tuple[str, ...]:
    notes = []
    if len(reading.pods) > 1:
        notes.append(f"rules recognise pods in {len(reading.pods)} ways; the most frequent one is used")
    if reading.masquerade_all and reading.masquerade_off_cluster:
        notes.append("some rules masquerade all traffic to cluster IPs, others only that of non-pods")
    return tuple(notes)


def _services(reading: Reading) -> tuple[list[Service], list[Remainder]]:
    """Return the finished services, and the rules in chains that belong to none."""

    def endpoint(chain: str) -> Endpoint | None:
        return reading.seps[chain].endpoint if chain in reading.seps else None

    services: list[Service] = []
    lost: list[Remainder] = []

    def drop(lines: list[Line], reason: str) -> None:
        lost.extend(Remainder(line.chain, line.origin, reason) for line in lines)

    for draft in (*reading.drafts.values(), *reading.chainless):
        service = draft.finish(endpoint)
        if service is None or (service.cluster_ip is None and not service.external):
            drop(draft.lines, "belongs to a service that no rule leads to")
        else:
            services.append(service)
    for name, sep in reading.seps.items():
        if name not in reading.used_seps:
            drop(sep.lines, "belongs to an endpoint that no rule leads to")
    services.sort(key=_order)
    return services, lost


def _order(service: Service) -> tuple[bool, str, str, int, int, int]:
    return (
        service.name is None,
        service.name or "",
        service.protocol,
        service.cluster_ip or 0,
        service.port or 0,
        service.node_port or 0,
    )


def _placed(services: list[Service]) -> tuple[Service, ...]:
    """Return the services; an endpoint of unknown place gets the place that another service shows for it."""
    known = {e.address: e.local for s in services for e in s.endpoints if e.local is not None}
    placed = []
    for service in services:
        if service.name is not None and service.name.startswith(_API_SERVER):
            elsewhere = tuple(replace(e, local=False) for e in service.endpoints)
            placed.append(replace(service, endpoints=elsewhere))
        elif any(e.local is None and e.address in known for e in service.endpoints):
            there = tuple(
                Endpoint(e.address, e.port, known.get(e.address), e.draining) if e.local is None else e
                for e in service.endpoints
            )
            placed.append(replace(service, endpoints=there))
        else:
            placed.append(service)
    return tuple(placed)


def _ipvs(ruleset: Ruleset, objects: ApiObjects | None, table: IpvsTable | None) -> KubeProxyState:
    reading = Reading(ruleset)
    read_shared(reading)
    recovered = ipvs_services(ruleset, None if table is None else table.of(ruleset.family))
    services = recovered.services
    if objects is not None and table is not None:
        services = tuple(completed(services, objects, ruleset.family))
    return KubeProxyState(
        family=ruleset.family,
        mode=Mode.IPVS,
        services=services,
        pods=recovered.pods,
        masquerade_all=recovered.masquerade_all,
        mark=reading.mark,
        fully_random=reading.fully_random,
        node_port_addresses=recovered.node_port_addresses,
        health_check_ports=recovered.health_check_ports,
        lines=tuple(reading.lines),
        remainder=()
        if table is not None
        else tuple(
            replace(r, reason="a rule of the ipvs mode, which is not analysed") for r in reading.remainder
        ),
        notes=recovered.notes,
        endpoints_known=table is not None,
    )
