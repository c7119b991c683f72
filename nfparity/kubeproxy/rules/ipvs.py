"""Services of a kube-proxy in ipvs mode, recovered from its ipsets, without their endpoints.

The endpoints are in the kernel's IPVS tables (``ipvsadm -S``), which are not a part of a dump of rules.
"""

from __future__ import annotations

from typing import Final

from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.service import Service
from translate.ir import IpSet, Ruleset, SetType
from translate.ir import Protocol as Number

__all__ = ["ipvs_services", "is_ipvs"]

_PROTOCOLS: Final = {Number.TCP: Protocol.TCP, Number.UDP: Protocol.UDP, Number.SCTP: Protocol.SCTP}
_CHAINS: Final = ("KUBE-LOAD-BALANCER", "KUBE-NODE-PORT", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER")


def is_ipvs(ruleset: Ruleset) -> bool:
    """Return whether the ruleset contains the chains of the ipvs mode (``pkg/proxy/ipvs``)."""
    return any(table.chain(name) is not None for table in ruleset.tables for name in _CHAINS)


def ipvs_services(ruleset: Ruleset) -> tuple[Service, ...]:
    """Return a service for every address and port in kube-proxy's ipsets, without other facts."""
    sets = {_plain(s.name): s for s in ruleset.sets}
    services = []
    for address, protocol, port in _places(sets.get("CLUSTER-IP")):
        services.append(_service(protocol, cluster_ip=address, port=port))
    local = set(_places(sets.get("EXTERNAL-IP-LOCAL")))
    for address, protocol, port in _places(sets.get("EXTERNAL-IP")):
        at = (address, protocol, port)
        services.append(_service(protocol, external_ips=(address,), port=port, local=at in local))
    local = set(_places(sets.get("LOAD-BALANCER-LOCAL")))
    for address, protocol, port in _places(sets.get("LOAD-BALANCER")):
        at = (address, protocol, port)
        services.append(_service(protocol, load_balancer_ips=(address,), port=port, local=at in local))
    for protocol in Protocol:
        near = set(_ports(sets.get(f"NODE-PORT-LOCAL-{_word(protocol)}")))
        for number in _ports(sets.get(f"NODE-PORT-{_word(protocol)}")):
            services.append(_service(protocol, node_port=number, local=number in near))
    return tuple(services)


def _service(
    protocol: Protocol,
    *,
    cluster_ip: int | None = None,
    external_ips: tuple[int, ...] = (),
    load_balancer_ips: tuple[int, ...] = (),
    node_port: int | None = None,
    port: int | None = None,
    local: bool | None = None,
) -> Service:
    return Service(
        name=None,
        protocol=protocol,
        cluster_ip=cluster_ip,
        port=port,
        external_ips=external_ips,
        load_balancer_ips=load_balancer_ips,
        node_port=node_port,
        source_ranges=None,
        affinity=None,
        external_local=local,
        internal_local=None,
    )


def _word(protocol: Protocol) -> str:
    return "SCTP-HASH" if protocol is Protocol.SCTP else protocol.upper()


def _plain(name: str) -> str:
    """Return the name of a set without its prefix (``KUBE-``, or ``KUBE-6-`` for IPv6)."""
    return name.removeprefix("KUBE-").removeprefix("6-")


def _places(ipset: IpSet | None) -> list[tuple[int, Protocol, int]]:
    if ipset is None or ipset.type is not SetType.HASH_IP_PORT:
        return []
    places = []
    for element in ipset.elements:
        address, number, port = (cell.low for cell in element.key)
        protocol = _PROTOCOLS.get(Number(number))
        if protocol is not None:
            places.append((address, protocol, port))
    return sorted(places)


def _ports(ipset: IpSet | None) -> list[int]:
    if ipset is None:
        return []
    if ipset.type is SetType.BITMAP_PORT:
        return sorted(e.key[0].low for e in ipset.elements)
    return sorted({port for _, _, port in _places(ipset)})
