"""Services of a kube-proxy in ipvs mode, recovered from its ipsets and from the virtual services of ip_vs.

The ipsets show the kind of every address (``pkg/proxy/ipvs/ipset.go``), the virtual services its endpoints,
scheduler and affinity. Without virtual services, only addresses and ports are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.model.ipvs import IpvsTable, VirtualService
from nfparity.kubeproxy.chains import Protocol
from nfparity.kubeproxy.service import Endpoint, Service
from translate.dataclass import dataclass, field, replace
from translate.ir import (
    Field,
    FieldTest,
    Interval,
    IpSet,
    Name,
    Ruleset,
    SetDirection,
    SetTest,
    SetType,
    TableName,
)
from translate.ir import Protocol as Number

__all__ = ["IPVS_CHAINS", "IpvsServices", "ipvs_services", "is_ipvs"]

_PROTOCOLS: Final = {Number.TCP: Protocol.TCP, Number.UDP: Protocol.UDP, Number.SCTP: Protocol.SCTP}
IPVS_CHAINS: Final = ("KUBE-LOAD-BALANCER", "KUBE-NODE-PORT", "KUBE-IPVS-FILTER", "KUBE-IPVS-OUT-FILTER")
"""Chains that only the ipvs mode creates."""

_LONGEST_NAME: Final = 31
"""``IPSET_MAXNAMELEN`` without the final NUL; kube-proxy cuts longer names."""

_Place = tuple[int, Protocol, int]
"""An address, a protocol and a port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IpvsServices:
    """The services, and the facts about the whole kube-proxy, as in a KubeProxyState."""

    services: tuple[Service, ...] = ()
    pods: Interval | Name | None = None
    masquerade_all: bool = False
    node_port_addresses: tuple[int, ...] | None = None
    health_check_ports: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def is_ipvs(ruleset: Ruleset) -> bool:
    """Return whether the ruleset contains the chains of the ipvs mode (``pkg/proxy/ipvs``)."""
    return any(table.chain(name) is not None for table in ruleset.tables for name in IPVS_CHAINS)


def ipvs_services(ruleset: Ruleset, table: IpvsTable | None = None) -> IpvsServices:
    """Return a service for every address and port in kube-proxy's ipsets.

    With ``table``, they have endpoints, affinity and source ranges, and ``table`` must be of the ruleset's
    family.
    """
    sets = _Sets.of(ruleset)
    pods, masquerade_all = _pods(ruleset)
    notes = ["ipvs mode: endpoints are only in the kernel's IPVS tables"] if table is None else []
    if not ruleset.sets:
        notes.append("the ipsets were not given, so no service is known")
    drafts = [*sets.services()]
    node_port_addresses: dict[int, None] = {}
    if table is not None:
        served = _Served(sets, table)
        drafts = [served.filled(draft) for draft in drafts]
        node_port_addresses = served.node_port_addresses
        notes += served.notes()
    return IpvsServices(
        services=tuple(drafts),
        pods=pods,
        masquerade_all=masquerade_all,
        node_port_addresses=tuple(sorted(node_port_addresses)) or None,
        health_check_ports=tuple(_ports(sets.get("HEALTH-CHECK-NODE-PORT"))),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Sets:
    """kube-proxy's ipsets."""

    named: dict[str, IpSet]

    @classmethod
    def of(cls, ruleset: Ruleset) -> _Sets:
        return cls({s.name: s for s in ruleset.sets})

    def get(self, name: str) -> IpSet | None:
        """Return the set with this name after ``KUBE-``, or after ``KUBE-6-``, where it may be cut."""
        return self.named.get(f"KUBE-{name}") or self.named.get(f"KUBE-6-{name}"[:_LONGEST_NAME])

    def services(self) -> Iterator[Service]:
        """Yield a service for every address and port, without other facts."""
        for address, protocol, port in self.places("CLUSTER-IP"):
            yield _service(protocol, cluster_ip=address, port=port)
        local = set(self.places("EXTERNAL-IP-LOCAL"))
        for place in dict.fromkeys((*self.places("EXTERNAL-IP"), *sorted(local))):
            address, protocol, port = place
            yield _service(protocol, external_ips=(address,), port=port, local=place in local)
        local = set(self.places("LOAD-BALANCER-LOCAL"))
        for place in self.places("LOAD-BALANCER"):
            address, protocol, port = place
            yield _service(protocol, load_balancer_ips=(address,), port=port, local=place in local)
        for protocol in Protocol:
            near = set(_ports(self.get(f"NODE-PORT-LOCAL-{_word(protocol)}")))
            for number in _ports(self.get(f"NODE-PORT-{_word(protocol)}")):
                yield _service(protocol, node_port=number, local=number in near)

    def places(self, name: str) -> list[_Place]:
        """Return the members of a set of addresses and ports."""
        return _places(self.get(name))

    def local_endpoints(self) -> set[tuple[int, int]]:
        """Return the endpoints on this node: kube-proxy lists their connections with themselves."""
        return {(address, port) for address, _, port in _heads(self.get("LOOP-BACK"))}

    def source_ranges(self, place: _Place) -> tuple[tuple[Interval, ...], bool]:
        """Return the source ranges of a load balancer IP, and whether the address itself is allowed."""
        if place not in self.places("LOAD-BALANCER-FW"):
            return (), False
        ranges = _thirds(self.get("LOAD-BALANCER-SOURCE-CIDR"), place)
        own = _thirds(self.get("LOAD-BALANCER-SOURCE-IP"), place)
        return tuple(ranges), any(place[0] in network for network in own)


@dataclass(slots=True)
class _Served:
    """Virtual services by place, given to the services of the ipsets one after the other."""

    sets: _Sets
    table: IpvsTable
    node_port_addresses: dict[int, None] = field(default_factory=dict)
    _used: set[_Place] = field(default_factory=set)
    _by_place: dict[_Place, VirtualService] = field(default_factory=dict)
    _local: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._by_place = {(v.address, _PROTOCOLS[v.protocol], v.port): v for v in self.table.services}
        self._local = self.sets.local_endpoints()

    def filled(self, draft: Service) -> Service:
        """Return a service with the facts of its virtual services."""
        virtual = list(self._virtual(draft))
        if not virtual:
            return replace(draft, affinity=0, source_ranges=(), internal_local=False)
        first = virtual[0]
        ranges: tuple[Interval, ...] = ()
        allows = False
        for address in draft.load_balancer_ips:
            assert draft.port is not None
            ranges, allows = self.sets.source_ranges((address, draft.protocol, draft.port))
        return replace(
            draft,
            endpoints=tuple(
                Endpoint(server.address, server.port, (server.address, server.port) in self._local)
                for server in first.servers
                if server.weight
            ),
            affinity=first.persistent,
            source_ranges=ranges,
            allows_node=allows,
            internal_local=False,
        )

    def _virtual(self, draft: Service) -> Iterator[VirtualService]:
        if draft.node_port is not None:
            cluster = {
                a
                for name in ("CLUSTER-IP", "EXTERNAL-IP", "EXTERNAL-IP-LOCAL", "LOAD-BALANCER")
                for a, _, _ in self.sets.places(name)
            }
            for at, virtual in self._by_place.items():
                if at[1:] == (draft.protocol, draft.node_port) and at[0] not in cluster:
                    self._used.add(at)
                    self.node_port_addresses[at[0]] = None
                    yield virtual
            return
        for address in (draft.cluster_ip, *draft.external_addresses):
            if address is not None and draft.port is not None:
                place = (address, draft.protocol, draft.port)
                if place in self._by_place:
                    self._used.add(place)
                    yield self._by_place[place]

    def notes(self) -> Iterator[str]:
        """Yield notes about virtual services that no ipset has, and about servers that end."""
        foreign = [v.place for place, v in self._by_place.items() if place not in self._used]
        if foreign:
            yield (
                f"{len(foreign)} virtual services are in no ipset of kube-proxy, and are ignored: "
                f"{', '.join(foreign[:4])}"
            )
        ending = sum(not server.weight for v in self.table.services for server in v.servers)
        if ending:
            yield f"{ending} endpoints have weight 0: they are terminating, and get no new connections"


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


def _pods(ruleset: Ruleset) -> tuple[Interval | Name | None, bool]:
    """Return the value that recognises pods, and whether all traffic to cluster IPs is masqueraded.

    KUBE-SERVICES marks traffic to KUBE-CLUSTER-IP: that of sources other than pods, all, or (without a way
    to detect pods) only that *from* cluster IPs.
    """
    nat = ruleset.table(TableName.NAT)
    chain = None if nat is None else nat.chain("KUBE-SERVICES")
    for rule in () if chain is None else chain.rules:
        sets = [t for t in rule.tests if isinstance(t, SetTest) and _plain(t.name) == "CLUSTER-IP"]
        if rule.callee != "KUBE-MARK-MASQ" or not sets:
            continue
        if sets[0].directions[0] is SetDirection.SRC:
            return None, False
        for test in rule.tests:
            if isinstance(test, FieldTest) and test.field in (Field.SADDR, Field.IIF) and test.negated:
                (value,) = test.values
                if isinstance(value, Interval | Name):
                    return value, False
        return None, True
    return None, False


def _word(protocol: Protocol) -> str:
    return "SCTP-HASH" if protocol is Protocol.SCTP else protocol.upper()


def _plain(name: str) -> str:
    """Return the name of a set without its prefix (``KUBE-``, or ``KUBE-6-`` for IPv6)."""
    return name.removeprefix("KUBE-").removeprefix("6-")


def _places(ipset: IpSet | None) -> list[_Place]:
    if ipset is None or ipset.type is not SetType.HASH_IP_PORT:
        return []
    return sorted(_heads(ipset))


def _heads(ipset: IpSet | None) -> Iterator[_Place]:
    """Yield the first three parts of each member of a set: address, protocol and port."""
    for element in () if ipset is None else ipset.elements:
        address, number, port = (cell.low for cell in element.key[:3])
        protocol = _PROTOCOLS.get(Number(number))
        if protocol is not None:
            yield address, protocol, port


def _thirds(ipset: IpSet | None, place: _Place) -> Iterable[Interval]:
    """Return the addresses or networks that a set has for a place."""
    if ipset is None:
        return []
    return [e.key[3] for e, head in zip(ipset.elements, _heads(ipset), strict=True) if head == place]


def _ports(ipset: IpSet | None) -> list[int]:
    if ipset is None:
        return []
    if ipset.type is SetType.BITMAP_PORT:
        return sorted(e.key[0].low for e in ipset.elements)
    return sorted({port for _, _, port in _places(ipset)})
