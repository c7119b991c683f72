"""The API objects that a kube-proxy watches, as ``kubectl`` prints them: Services, EndpointSlices, Nodes.

``pkg/proxy``: ``newBaseServiceInfo`` reads a Service, ``endpointslicecache`` an EndpointSlice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import ip_network
from typing import Any

from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.objectshapes import SHAPES
from nfparity.kubeproxy.service import Endpoint, Service
from translate.dataclass import dataclass
from translate.ir import Family, Interval, parse_address
from translate.jsoninput import json_kind, read_json

__all__ = ["ApiObjects", "read_objects"]

_AFFINITY_SECONDS = 10800
"""``DefaultClientIPServiceAffinitySeconds``."""

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApiObjects:
    """Services, EndpointSlices and Nodes as JSON objects whose shape has been checked."""

    services: tuple[Json, ...]
    slices: tuple[Json, ...]
    nodes: tuple[Json, ...]

    def of(self, family: Family, node: str | None = None) -> tuple[Service, ...]:
        """Return the services of a family as seen by kube-proxy on ``node``.

        The default is the only Node among the objects; if there are several, the nodes of endpoints are
        unknown. Topology hints are ignored.
        """
        names = [n["metadata"]["name"] for n in self.nodes]
        node = names[0] if node is None and len(names) == 1 else node
        services = [s for service in self.services for s in self._ports(service, family, node)]
        return tuple(sorted(services, key=lambda s: (s.name or "", s.protocol)))

    def names(self) -> Iterator[tuple[str, Protocol]]:
        """Yield the name and the protocol of every port of every Service."""
        for service in self.services:
            for port in service["spec"].get("ports") or ():
                yield _port_name(service, port), _protocol(port)

    def places(self, family: Family) -> Iterator[tuple[int, str]]:
        """Yield the address and the node name of every endpoint with a node name."""
        for piece in self.slices:
            for endpoint in piece.get("endpoints") or ():
                if endpoint.get("nodeName"):
                    for address in _addresses(endpoint.get("addresses") or (), family):
                        yield address, endpoint["nodeName"]

    def _ports(self, service: Json, family: Family, node: str | None) -> Iterator[Service]:
        spec, meta = service["spec"], service["metadata"]
        addresses = _addresses(spec.get("clusterIPs") or [spec.get("clusterIP")], family)
        labels = meta.get("labels") or {}
        if not addresses or spec.get("type") == "ExternalName":
            return
        if "service.kubernetes.io/service-proxy-name" in labels:
            return
        ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        balancers = _addresses([i.get("ip") for i in ingress if i.get("ipMode", "VIP") == "VIP"], family)
        ranges = tuple(_ranges(spec.get("loadBalancerSourceRanges") or (), family)) if balancers else ()
        external = tuple(sorted(_addresses(spec.get("externalIPs") or (), family)))
        affinity = 0
        if spec.get("sessionAffinity") == "ClientIP":
            config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
            affinity = config.get("timeoutSeconds") or _AFFINITY_SECONDS
        own = self._node_addresses(node, family)
        for port in spec.get("ports") or ():
            outside = bool(port.get("nodePort") or balancers or external)
            local = spec.get("externalTrafficPolicy") == "Local" and outside
            yield Service(
                name=_port_name(service, port),
                protocol=_protocol(port),
                cluster_ip=addresses[0],
                port=port["port"],
                endpoints=self._endpoints(service, port, family, node),
                node_port=port.get("nodePort"),
                external_ips=external,
                load_balancer_ips=tuple(sorted(balancers)),
                source_ranges=ranges,
                allows_node=any(a in r for a in own for r in ranges),
                affinity=affinity,
                external_local=local,
                internal_local=spec.get("internalTrafficPolicy") == "Local",
                health_check_port=(spec.get("healthCheckNodePort") or None) if local else None,
            )

    def _node_addresses(self, node: str | None, family: Family) -> list[int]:
        for item in self.nodes:
            if item["metadata"]["name"] == node:
                listed = (item.get("status") or {}).get("addresses") or ()
                inside = [a["address"] for a in listed if a.get("type") == "InternalIP"]
                return _addresses(inside, family)
        return []

    def _endpoints(self, service: Json, port: Json, family: Family, node: str | None) -> tuple[Endpoint, ...]:
        meta = service["metadata"]
        address_type = "IPv4" if family is Family.IP else "IPv6"
        endpoints = set()
        for piece in self.slices:
            owner = (piece["metadata"].get("labels") or {}).get("kubernetes.io/service-name")
            same = piece["metadata"].get("namespace", "default") == meta.get("namespace", "default")
            if owner != meta["name"] or not same or piece.get("addressType") != address_type:
                continue
            for target in piece.get("ports") or ():
                if (target.get("name") or "") != (port.get("name") or "") or not target.get("port"):
                    continue
                if _protocol(target) is not _protocol(port):
                    continue
                for endpoint in piece.get("endpoints") or ():
                    if (endpoint.get("conditions") or {}).get("ready") is False:
                        continue
                    for address in _addresses(endpoint.get("addresses") or (), family):
                        here = None if node is None else endpoint.get("nodeName") == node
                        endpoints.add((address, target["port"], here))
        ordered = sorted(endpoints, key=lambda e: (e[0], e[1]))
        return tuple(Endpoint(address, number, here) for address, number, here in ordered)


def read_objects(text: str | bytes, *, name: str) -> ApiObjects:
    """Read ``{"services": […], "endpointslices": […], "nodes": […]}`` or a List of ``kubectl get -o json``.

    Objects of other kinds are ignored. Raises ParseError with the position if the text is not JSON, or if an
    object lacks a required field.
    """
    document = read_json(text, name=name)
    whole = document.value
    if not isinstance(whole, dict):
        raise document.error((), f"expected an object with API objects, found {json_kind(whole)}")
    kinds: dict[str, list[Json]] = {kind: [] for kind in _LISTS.values()}
    for key in (*_LISTS, "items"):
        listed = whole.get(key, [])
        if not isinstance(listed, list):
            raise document.error((key,), f"{key}: expected a list of API objects, found {json_kind(listed)}")
        for index, item in enumerate(listed):
            if not isinstance(item, dict):
                raise document.error((key, index), f"expected an API object, found {json_kind(item)}")
            kind = _LISTS.get(key, str(item.get("kind")))
            if kind not in kinds or item.get("addressType") == "FQDN":
                continue  # kube-proxy ignores endpoints with host names
            for path, fault in SHAPES[kind].faults(item, (key, index)):
                raise document.error(path, f"not a valid {kind}: {fault}")
            kinds[kind].append(item)
    return ApiObjects(tuple(kinds["Service"]), tuple(kinds["EndpointSlice"]), tuple(kinds["Node"]))


_LISTS = {"services": "Service", "endpointslices": "EndpointSlice", "nodes": "Node"}


def _port_name(service: Json, port: Json) -> str:
    meta = service["metadata"]
    suffix = f":{port['name']}" if port.get("name") else ""
    return f"{meta.get('namespace', 'default')}/{meta['name']}{suffix}"


def _protocol(port: Json) -> Protocol:
    return Protocol((port.get("protocol") or "TCP").lower())


def _addresses(texts: Sequence[str | None], family: Family) -> list[int]:
    addresses = []
    for text in texts:
        if text and text != "None" and (":" in text) is (family is Family.IP6):
            addresses.append(parse_address(family, text))
    return addresses


def _ranges(texts: Sequence[str], family: Family) -> Iterator[Interval]:
    for text in texts:
        if (":" in text) is (family is Family.IP6):
            network = ip_network(text.strip(), strict=False)
            yield Interval(int(network.network_address), int(network.broadcast_address))
