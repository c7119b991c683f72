"""Facts of a node for the detectors: its rules, kube-proxy's services, and the sources of packets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.node import Node
from backends.model.packet import Packet
from harness.corpus.generate.addresses import Places
from nfparity.assess.catalogue import Version
from nfparity.assess.node.index import ServiceIndex, number_of
from nfparity.assess.node.nativetests import NO_TESTS, NativeTests
from nfparity.assess.node.other_rules import OtherRules, without_kube_proxy
from nfparity.kubeproxy.service import Service
from nfparity.kubeproxy.state import KubeProxyState
from translate.dataclass import dataclass, field
from translate.ir import Family, Interval, Ruleset, format_address

__all__ = ["Client", "Facts", "gather", "range_text"]

_SHOWN: Final = 5
_SOURCE_PORT: Final = 41000


@dataclass(frozen=True, slots=True)
class Client:
    """The source of a flow: its name in flow ids, its address, and its interface (None: the node itself)."""

    kind: str
    address: int
    entry: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of one family of a node.

    ``version`` is the Kubernetes version after the change; None: unknown. ``meta`` is the snapshot's
    ``meta.json``; ``native_tables`` are nftables tables that iptables did not write (``ip kube-proxy``), and
    ``native_tests`` the constants of those that are loaded.
    ``service_range`` contains every ClusterIP; ``assumed`` lists the inferred facts.
    """

    ruleset: Ruleset
    other_rules: OtherRules
    node: Node
    state: KubeProxyState
    places: Places
    version: Version | None = None
    meta: Mapping[str, object] = field(default_factory=dict)
    native_tables: tuple[str, ...] = ()
    native_tests: NativeTests = NO_TESTS
    service_range: Interval | None = None
    assumed: tuple[str, ...] = ()
    index: ServiceIndex = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", ServiceIndex.of(self.state))

    @property
    def family(self) -> Family:
        """The family of the rules."""
        return self.ruleset.family

    @property
    def services(self) -> tuple[Service, ...]:
        """The services of kube-proxy."""
        return self.state.services

    @property
    def cluster_ips(self) -> Collection[int]:
        """Every ClusterIP, once."""
        return self.index.cluster_ips.keys()

    def is_loopback(self, address: int) -> bool:
        """True for a loopback address."""
        return address >> 24 == 127 if self.family is Family.IP else address == 1

    def is_own(self, address: int) -> bool:
        """True for an address of one of the node's interfaces."""
        return address in self.places.own

    def label(self, service: Service) -> str:
        """Return the service's name, or its address and port."""
        return service.label(self.family)

    def clients(self) -> tuple[Client, ...]:
        """Return a client in the cluster, one outside, and the node itself, if they exist."""
        clients = []
        for kind, addresses in (("inside", self.places.inside), ("outside", self.places.outside)):
            for address in addresses[:1]:
                entry = self.places.behind(address)
                if entry:
                    clients.append(Client(kind, address, entry))
        if self.places.own:
            clients.append(Client("node", self.places.own[0], None))
        return tuple(clients)

    def client(self, kind: str) -> Client | None:
        """Return one of :meth:`clients`, or None."""
        return next((c for c in self.clients() if c.kind == kind), None)

    def packet(self, client: Client, dst: int, service: Service, port: int | None) -> Packet:
        """Return the first packet of a client to an address, with the service's protocol."""
        return Packet(
            family=self.family,
            src=client.address,
            dst=dst,
            proto=number_of(service),
            sport=_SOURCE_PORT,
            dport=port,
        )

    def flow(self, k: str, client: Client, packet: Packet, *, about: str, why: str) -> Flow:
        """Return a flow of one packet; its id is made of difference, subject and client."""
        return Flow(
            id=f"{k}/{about}/{client.kind}",
            steps=(Send(packet=packet, entry=client.entry),),
            why=why,
            source="detector",
        )

    def by_node_port(self, packet: Packet) -> Service | None:
        """Return the service whose node port a packet is sent to."""
        return self.index.by_node_port.get((packet.proto, _port(packet)))

    def by_external(self, packet: Packet) -> Service | None:
        """Return the service whose external address a packet is sent to."""
        return self.index.by_external.get((packet.dst, packet.proto, _port(packet)))

    def by_cluster_ip(self, packet: Packet) -> Service | None:
        """Return the service whose ClusterIP and port a packet is sent to."""
        return self.index.by_cluster_ip.get((packet.dst, packet.proto, _port(packet)))

    def at_cluster_ip(self, address: int) -> tuple[Service, ...]:
        """Return every service with that ClusterIP."""
        return self.index.cluster_ips.get(address, ())


def _port(packet: Packet) -> int | None:
    return packet.dport if isinstance(packet.dport, int) else None


def gather(
    ruleset: Ruleset,
    node: Node,
    state: KubeProxyState,
    *,
    version: Version | None = None,
    meta: Mapping[str, object] | None = None,
    native_tables: tuple[str, ...] = (),
    native_tests: NativeTests = NO_TESTS,
    service_range: Interval | None = None,
    assumed: tuple[str, ...] = (),
) -> Facts:
    """Return the facts. Without ``service_range`` it is the smallest prefix that contains every ClusterIP.

    ``assumed`` is appended to the assumptions about the node.
    """
    assumptions = [*node.assumed, *assumed]
    ips = [s.cluster_ip for s in state.services if s.cluster_ip is not None]
    if service_range is None and len(ips) > 1:
        service_range = _smallest(ips, ruleset.family)
        prefix = range_text(service_range, ruleset.family)
        assumptions.append(f"the service range is {prefix}, the smallest prefix with every ClusterIP")
    other_rules = without_kube_proxy(ruleset, state)
    return Facts(
        ruleset=ruleset,
        other_rules=other_rules,
        node=node,
        state=state,
        places=Places.of(ruleset, node),
        version=version,
        meta=meta or {},
        native_tables=native_tables,
        native_tests=native_tests,
        service_range=service_range,
        assumed=(
            *assumptions,
            *state.notes,
            *_not_understood(state),
            *_not_modelled(ruleset),
            *other_rules.notes,
            *native_tests.notes,
        ),
    )


def _not_understood(state: KubeProxyState) -> tuple[str, ...]:
    lines = [str(line.origin.line) for line in state.remainder]
    if not lines:
        return ()
    shown = ", ".join(lines[:_SHOWN]) + (", …" if len(lines) > _SHOWN else "")
    what = "rule in kube-proxy's chains is" if len(lines) == 1 else "rules in kube-proxy's chains are"
    removed = "it is" if len(lines) == 1 else "they are"
    return (f"{len(lines)} {what} not understood; {removed} removed with the chains (line {shown})",)


def _not_modelled(ruleset: Ruleset) -> tuple[str, ...]:
    """Return a note about rules that are not modelled, if there are any."""
    lines = {rule.origin.line: None for rule, _ in ruleset.unknowns() if rule.is_undecided}
    if not lines:
        return ()
    shown = ", ".join(map(str, list(lines)[:_SHOWN])) + (", …" if len(lines) > _SHOWN else "")
    extensions = {unknown.extension for rule, unknown in ruleset.unknowns() if rule.is_undecided}
    names = ", ".join(sorted(filter(None, extensions)))
    return (f"{names}: not modelled (line {shown}); iptables on the kernel is assumed to be correct",)


def _smallest(addresses: list[int], family: Family) -> Interval:
    differing = (min(addresses) ^ max(addresses)).bit_length()
    return Interval.prefix(min(addresses) >> differing << differing, family.bits - differing, family.bits)


def range_text(interval: Interval, family: Family) -> str:
    """Return a prefix in CIDR notation."""
    return f"{format_address(family, interval.low)}/{interval.prefix_length(family.bits)}"
