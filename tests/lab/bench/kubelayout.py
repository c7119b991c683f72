"""kube-proxy's nftables layout for a cluster of ClusterIP services: a chain per service and per endpoint.

The layout is that of kube-proxy. A verdict map leads from address, protocol and port to the chain of the
service. This chain draws an endpoint by an anonymous verdict map. The chain of the endpoint marks packets of
the endpoint itself, and has the DNAT rule. A first load adds everything. A change of a service flushes its
chains and fills them again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator

from tests.lab.kuberules.cluster import Cluster, Service, prefix_text
from translate.errors import InputError
from translate.ir import Family, format_address

__all__ = ["kube_proxy_nftables", "service_again"]

_TABLE = "ip kube-proxy"
_SKELETON = """\
add table ip kube-proxy { comment "rules for kube-proxy" ; }
add chain ip kube-proxy filter-prerouting { type filter hook prerouting priority -110 ; }
add chain ip kube-proxy filter-input { type filter hook input priority -110 ; }
add chain ip kube-proxy filter-forward { type filter hook forward priority -110 ; }
add chain ip kube-proxy filter-output { type filter hook output priority -110 ; }
add chain ip kube-proxy filter-output-post-dnat { type filter hook output priority -90 ; }
add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100 ; }
add chain ip kube-proxy nat-output { type nat hook output priority -100 ; }
add chain ip kube-proxy nat-postrouting { type nat hook postrouting priority 100 ; }
add chain ip kube-proxy nodeport-endpoints-check
add rule ip kube-proxy filter-input ct state new jump nodeport-endpoints-check
add chain ip kube-proxy service-endpoints-check
add rule ip kube-proxy filter-input ct state new jump service-endpoints-check
add rule ip kube-proxy filter-forward ct state new jump service-endpoints-check
add rule ip kube-proxy filter-output ct state new jump service-endpoints-check
add chain ip kube-proxy firewall-check
add rule ip kube-proxy filter-prerouting ct state new jump firewall-check
add rule ip kube-proxy filter-output ct state new jump firewall-check
add chain ip kube-proxy services
add rule ip kube-proxy nat-output jump services
add rule ip kube-proxy nat-prerouting jump services
add chain ip kube-proxy masquerading
add rule ip kube-proxy nat-postrouting jump masquerading
add chain ip kube-proxy cluster-ips-check
add rule ip kube-proxy filter-forward ct state new jump cluster-ips-check
add rule ip kube-proxy filter-output-post-dnat ct state new jump cluster-ips-check
add chain ip kube-proxy mark-for-masquerade
add rule ip kube-proxy mark-for-masquerade mark set mark or 0x00004000
add rule ip kube-proxy masquerading mark and 0x00004000 == 0 return
add rule ip kube-proxy masquerading mark set mark xor 0x00004000
add rule ip kube-proxy masquerading masquerade fully-random
add set ip kube-proxy cluster-ips { type ipv4_addr ; }
add rule ip kube-proxy cluster-ips-check ip daddr @cluster-ips reject
add set ip kube-proxy nodeport-ips { type ipv4_addr ; }
add map ip kube-proxy no-endpoint-services { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy no-endpoint-nodeports { type inet_proto . inet_service : verdict ; }
add chain ip kube-proxy reject-chain
add rule ip kube-proxy reject-chain reject
add rule ip kube-proxy service-endpoints-check ip daddr . meta l4proto . th dport vmap @no-endpoint-services
add rule ip kube-proxy nodeport-endpoints-check ip daddr @nodeport-ips \
    meta l4proto . th dport vmap @no-endpoint-nodeports
add map ip kube-proxy firewall-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add rule ip kube-proxy firewall-check ip daddr . meta l4proto . th dport vmap @firewall-ips
add map ip kube-proxy service-ips { type ipv4_addr . inet_proto . inet_service : verdict ; }
add map ip kube-proxy service-nodeports { type inet_proto . inet_service : verdict ; }
add rule ip kube-proxy services ip daddr . meta l4proto . th dport vmap @service-ips
add rule ip kube-proxy services ip daddr @nodeport-ips meta l4proto . th dport vmap @service-nodeports
"""


def kube_proxy_nftables(cluster: Cluster) -> str:
    """Return the nft commands that load a cluster. Raises InputError unless all services are ClusterIP."""
    lines = [_SKELETON.rstrip()]
    address = format_address(Family.IP, cluster.node_ip)
    lines.append(f"add element {_TABLE} nodeport-ips {{ {address} }}")
    for service in cluster.services:
        lines += _added(cluster, service)
    return "\n".join(lines) + "\n"


def service_again(cluster: Cluster, service: Service) -> str:
    """Return the nft commands that change the endpoints of a loaded service to its present ones."""
    chains = [_service_chain(service), *_endpoint_chains(service)]
    lines = [f"{verb} chain {_TABLE} {chain}" for chain in chains for verb in ("add", "flush")]
    return "\n".join([*lines, *_rules(cluster, service)]) + "\n"


def _added(cluster: Cluster, service: Service) -> Iterator[str]:
    if cluster.family is not Family.IP or service.external or service.affinity or service.internal_local:
        raise InputError(f"{service.name}: only ClusterIP services of IPv4 are written in this layout")
    key = _key(service)
    if not service.endpoints:
        yield f"add element {_TABLE} no-endpoint-services {{ {key} : goto reject-chain }}"
        return
    for chain in (*_endpoint_chains(service), _service_chain(service)):
        yield f"add chain {_TABLE} {chain}"
    yield f"add element {_TABLE} cluster-ips {{ {_address(service)} }}"
    yield f"add element {_TABLE} service-ips {{ {key} : goto {_service_chain(service)} }}"
    yield from _rules(cluster, service)


def _rules(cluster: Cluster, service: Service) -> Iterator[str]:
    chain, endpoints = _service_chain(service), _endpoint_chains(service)
    pods = prefix_text(cluster.family, cluster.pods)
    yield (
        f"add rule {_TABLE} {chain} ip daddr {_address(service)} {service.protocol} dport {service.port}"
        f" ip saddr != {pods} jump mark-for-masquerade"
    )
    drawn = " , ".join(f"{n} : goto {name}" for n, name in enumerate(endpoints))
    yield f"add rule {_TABLE} {chain} numgen random mod {len(endpoints)} vmap {{ {drawn} }}"
    for name, endpoint in zip(endpoints, service.endpoints, strict=True):
        address = format_address(cluster.family, endpoint.address)
        yield f"add rule {_TABLE} {name} ip saddr {address} jump mark-for-masquerade"
        yield f"add rule {_TABLE} {name} meta l4proto {service.protocol} dnat to {address}:{endpoint.port}"


def _key(service: Service) -> str:
    return f"{_address(service)} . {service.protocol} . {service.port}"


def _address(service: Service) -> str:
    return format_address(Family.IP, service.cluster_ip)


def _service_chain(service: Service) -> str:
    name, _, port = service.name.partition(":")
    return f"service-{_hash(service.name)}-{name}/{service.protocol}/{port}"


def _endpoint_chains(service: Service) -> list[str]:
    name, _, port = service.name.partition(":")
    chains = []
    for endpoint in service.endpoints:
        text = endpoint.text(Family.IP).replace(":", "/")
        chains.append(f"endpoint-{_hash(service.name + text)}-{name}/{service.protocol}/{port}__{text}")
    return chains


def _hash(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest()).decode()[:8]
