"""Which service a packet is for, by where it goes: for reports that name services of packets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.service import Service
from nfparity.kubeproxy.state import KubeProxyState

__all__ = ["ServicePlaces"]

_NODE_PORT = -1
"""Stands for every address of the node."""


@dataclass(frozen=True, slots=True)
class ServicePlaces:
    """The services of a state by destination, by endpoint and by line. A look costs one dictionary access.

    Where two services claim a destination, the one whose rule stands first in the dump has it, because the
    first rule that matches wins.
    """

    _served: dict[tuple[int, Protocol, int], Service]
    _behind: dict[tuple[int, Protocol, int], tuple[Service, ...]]
    _lines: dict[int, Service]

    @classmethod
    def of(cls, state: KubeProxyState) -> ServicePlaces:
        """Return the places of every service."""
        served: dict[tuple[int, Protocol, int], tuple[int, Service]] = {}
        behind: dict[tuple[int, Protocol, int], list[Service]] = {}
        lines: dict[int, Service] = {}
        for service in state.services:
            first = _first_lines(service)
            for place in _places(service):
                key = (first.get(place[0], 0), service)
                if place not in served or key[0] < served[place][0]:
                    served[place] = key
            for endpoint in service.endpoints:
                behind.setdefault((endpoint.address, service.protocol, endpoint.port), []).append(service)
            for line in service.lines:
                lines[line.origin.line] = service
        return cls(
            {place: service for place, (_, service) in served.items()},
            {place: tuple(found) for place, found in behind.items()},
            lines,
        )

    def service_of(self, dst: int, protocol: Protocol, port: int, *, on_node: bool = False) -> Service | None:
        """Return the service that a packet to ``dst`` asks for; ``on_node``: ``dst`` is the node's own.

        An address and port of a service come before a node port, as in KUBE-SERVICES.
        """
        found = self._served.get((dst, protocol, port))
        if found is None and on_node:
            found = self._served.get((_NODE_PORT, protocol, port))
        return found

    def behind(self, address: int, protocol: Protocol, port: int) -> tuple[Service, ...]:
        """Return the services that have an endpoint."""
        return self._behind.get((address, protocol, port), ())

    def of_line(self, line: int) -> Service | None:
        """Return the service that a line of the dump is about."""
        return self._lines.get(line)


def _places(service: Service) -> Iterator[tuple[int, Protocol, int]]:
    if service.port is not None:
        for address in service.external_addresses:
            yield address, service.protocol, service.port
        if service.cluster_ip is not None:
            yield service.cluster_ip, service.protocol, service.port
    if service.node_port is not None:
        yield _NODE_PORT, service.protocol, service.node_port


def _first_lines(service: Service) -> dict[int, int]:
    """The first line that is about each of a service's addresses."""
    found: dict[int, int] = {}
    for line in service.lines:
        if line.address is not None:
            found.setdefault(line.address, line.origin.line)
    return found
