"""State of one kube-proxy on its node in one family, as far as its rules show it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from nfparity.kubeproxy.service import Line, Part, Service
from translate.ir import Family, Interval, Name, Origin

__all__ = ["KubeProxyState", "Mode", "Remainder"]


class Mode(StrEnum):
    """The mode of kube-proxy on the node."""

    IPTABLES = "iptables"
    IPVS = "ipvs"
    NONE = "none"
    """There are no rules of a kube-proxy."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """A rule in a chain of kube-proxy's that is not of its making, or not of a shape known here."""

    chain: str
    origin: Origin
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeProxyState:
    """All facts about a kube-proxy in a dump.

    ``pods`` tells traffic of the node's pods (or of the cluster's) from other traffic: a network
    (``clusterCIDR``, or the node's, by ``detectLocalMode``), or an interface or their common prefix; None
    if it does not tell, or if no service has a cluster IP with endpoints. ``masquerade_all`` is
    ``iptables.masqueradeAll``. ``mark`` is the bit that says "masquerade", None without KUBE-MARK-MASQ.
    ``node_port_addresses`` is None for every local address, which is the default of the iptables mode.
    ``localhost_node_ports``: whether node ports answer at 127.0.0.1. ``health_check_ports`` are
    those of which nothing names the service. ``lines`` are rules of no service.
    ``remainder`` is what was not understood; ``notes`` what a reader of the rest must know.
    """

    family: Family
    mode: Mode
    services: tuple[Service, ...] = ()
    pods: Interval | Name | None = None
    masquerade_all: bool = False
    mark: int | None = None
    fully_random: bool = False
    node_port_addresses: tuple[int, ...] | None = None
    localhost_node_ports: bool = False
    health_check_ports: tuple[int, ...] = ()
    lines: tuple[Line, ...] = ()
    remainder: tuple[Remainder, ...] = ()
    notes: tuple[str, ...] = ()

    def lines_for(self, *parts: Part) -> Iterator[Line]:
        """Yield the rules of no service that are for any of ``parts``."""
        return (line for line in self.lines if line.part in parts)
