"""State of one kube-proxy on its node in one family, with the facts that its rules show."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from nfparity.kubeproxy.service import Line, Purpose, Service
from translate.dataclass import dataclass
from translate.ir import Family, Interval, Name, Origin

__all__ = ["KubeProxyState", "Mode", "Remainder"]


class Mode(StrEnum):
    """The mode of kube-proxy on the node."""

    IPTABLES = "iptables"
    IPVS = "ipvs"
    NONE = "none"
    """The ruleset contains no rules of kube-proxy."""


@dataclass(frozen=True, slots=True)
class Remainder:
    """A rule in a chain of kube-proxy that another program wrote, or that has an unknown form."""

    chain: str
    origin: Origin
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeProxyState:
    """All facts about a kube-proxy in a dump.

    ``pods`` is the value by which rules recognise traffic of the node's (or cluster's) pods: a network
    (``clusterCIDR``, or the node's, by ``detectLocalMode``), an interface, or a prefix of interface names.
    It is None if no rule recognises such traffic, or if no service has a cluster IP with endpoints.
    ``masquerade_all`` is ``iptables.masqueradeAll``. ``mark`` is the masquerade mark, None without
    KUBE-MARK-MASQ. ``node_port_addresses`` is None for every local address, the default of the iptables
    mode. ``localhost_node_ports``: node ports answer at 127.0.0.1. ``health_check_ports`` are ports whose
    service is unknown. ``lines`` are rules that belong to no service. ``remainder`` are rules that were not
    understood; ``notes`` are warnings about the other facts. ``endpoints_known`` is false in ipvs mode
    without the virtual services of ip_vs.
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
    endpoints_known: bool = True

    def lines_for(self, *parts: Purpose) -> Iterator[Line]:
        """Yield the rules that belong to no service and serve any of these purposes."""
        return (line for line in self.lines if line.part in parts)
