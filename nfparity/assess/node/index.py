"""An index of a node's services by address and port, and of kube-proxy's rules by line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nfparity.kubeproxy import KubeProxyState, Line, Service
from translate.dataclass import dataclass
from translate.ir import Protocol

__all__ = ["ServiceIndex", "number_of"]

_NUMBERS: Final = {"tcp": Protocol.TCP, "udp": Protocol.UDP, "sctp": Protocol.SCTP}

_Place = tuple[int, int, int | None]
"""Address, protocol, port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceIndex:
    """Services by address, protocol and port; the first one if two use the same.

    ``lines`` maps each line of the dump with a rule of kube-proxy to the rule and its service, if any.
    """

    cluster_ips: Mapping[int, tuple[Service, ...]]
    by_cluster_ip: Mapping[_Place, Service]
    by_external: Mapping[_Place, Service]
    by_node_port: Mapping[tuple[int, int | None], Service]
    by_health_check: Mapping[int, Service]
    lines: Mapping[int, tuple[Line, Service | None]]

    @classmethod
    def of(cls, state: KubeProxyState) -> ServiceIndex:
        """Return the index of the services of ``state``."""
        cluster_ips: dict[int, tuple[Service, ...]] = {}
        by_cluster_ip: dict[_Place, Service] = {}
        by_external: dict[_Place, Service] = {}
        by_node_port: dict[tuple[int, int | None], Service] = {}
        by_health_check: dict[int, Service] = {}
        for service in state.services:
            number = number_of(service)
            if service.cluster_ip is not None:
                cluster_ips[service.cluster_ip] = (*cluster_ips.get(service.cluster_ip, ()), service)
                by_cluster_ip.setdefault((service.cluster_ip, number, service.port), service)
            for address in service.external_addresses:
                by_external.setdefault((address, number, service.port), service)
            if service.node_port is not None:
                by_node_port.setdefault((number, service.node_port), service)
            if service.health_check_port is not None:
                by_health_check.setdefault(service.health_check_port, service)
        return cls(
            cluster_ips=cluster_ips,
            by_cluster_ip=by_cluster_ip,
            by_external=by_external,
            by_node_port=by_node_port,
            by_health_check=by_health_check,
            lines=dict(_lines(state)),
        )


def _lines(state: KubeProxyState) -> Iterable[tuple[int, tuple[Line, Service | None]]]:
    yield from ((line.origin.line, (line, None)) for line in state.lines)
    for service in state.services:
        yield from ((line.origin.line, (line, service)) for line in service.lines)


def number_of(service: Service) -> int:
    """Return the number of a service's protocol."""
    return int(_NUMBERS[service.protocol.value])
