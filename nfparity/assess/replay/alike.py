"""Classes of flows to services that differ only in addresses, ports and names.

kube-proxy writes the rules of a service from a few of its properties. If two services have the same
properties, the outcomes of a packet to one are those of the same packet to the other, with the addresses and
ports exchanged: a :class:`Renaming`. The first and the last flow of a class are tested in full. Each other
flow is simulated, and sent once through both modes. If its outcomes are not the renamed outcomes of the first
flow, it is tested in full, too. Flows for a known difference and those of a corpus are in different classes.

In iptables mode this needs no assumption: the simulator computes every outcome of every flow, and a flow
whose outcomes are not the renamed ones of the first is in no class. In nftables mode it assumes rules that
kube-proxy, or :mod:`nfparity.kubeproxy.nftables`, generated from the services' properties. Other rules must
treat the constants of both services alike, which :meth:`Kinds.of` checks: the iptables rules that stay, and
the nftables tables of the node (:mod:`nfparity.assess.node.nativetests`). The simulator does not know these
tables; with them, iptables mode rests on the same check.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from backends.model.flow import Flow, IcmpError, Send, Step
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple
from backends.model.packet import Packet
from harness.diff.paths import picked_range
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.node.cells import Cells
from nfparity.assess.node.facts import Facts
from nfparity.assess.node.index import number_of
from nfparity.assess.node.lookups import Lookups
from nfparity.kubeproxy import Service
from nfparity.kubeproxy.service import Endpoint
from translate.dataclass import dataclass, replace
from translate.ir import AnyOf, Field, FieldTest, Interval, Rule, Test

__all__ = ["FEWEST", "FlowClass", "Kinds", "Renaming", "flow_classes", "known_difference"]

FEWEST = 3
"""The minimum size of a class; the flows of smaller ones are tested in full."""

_ODDS = 1e-6
"""The tolerance for equal probabilities, because iptables rounds the probabilities of endpoints."""

_ADDRESSES = (Field.SADDR, Field.DADDR)
_PORTS = (Field.SPORT, Field.DPORT)

_Constants = tuple[tuple[int | None, ...], tuple[object, ...]]
"""Addresses and ports, in the same order for each flow of a class."""


@dataclass(frozen=True, slots=True)
class Renaming:
    """A map from the constants of one flow's services to those of another flow's services."""

    addresses: Mapping[object, int | None]
    ports: Mapping[object, object]

    @classmethod
    def between(cls, own: _Constants, other: _Constants) -> Renaming:
        """Return the renaming from ``own`` to ``other``; both list their constants in the same order."""
        addresses, ports = (dict(zip(a, b, strict=True)) for a, b in zip(own, other, strict=True))
        return cls(addresses, ports)  # type: ignore[arg-type]

    def outcome(self, outcome: Outcome) -> Outcome:
        """Return the renamed outcome, with the renamed tuple that an ICMP error quotes."""
        quoted = outcome.quoted
        return replace(
            outcome,
            **self._tuple(outcome),
            quoted=None if quoted is None else replace(quoted, **self._tuple(quoted)),
        )

    def _tuple(self, of: Outcome | QuotedTuple) -> dict[str, Any]:
        addresses, ports = self.addresses, self.ports
        return {
            "src": addresses.get(of.src, of.src),
            "dst": addresses.get(of.dst, of.dst),
            "sport": ports.get(of.sport, of.sport),
            "dport": ports.get(of.dport, of.dport),
        }

    def change(self, changed: ChangedPacket, flow: Flow) -> ChangedPacket:
        """Return the renamed change of a flow's only packet, as that of ``flow``, without its trace."""
        return replace(
            changed,
            flow=flow,
            packet=flow.first.packet,
            entry=flow.first.entry,
            before=self.outcome(changed.before),
            after=self.outcome(changed.after),
            tracing=None,
        )

    def makes(self, first: FlowResult, other: FlowResult) -> bool:
        """Return whether ``other`` has the renamed branches of ``first``, with equal probabilities."""
        probabilities = {branch.outcomes: branch.probability for branch in other.branches}
        renamed = {tuple(map(self.outcome, b.outcomes)): b.probability for b in first.branches}
        return probabilities.keys() == renamed.keys() and all(
            abs(probabilities[o] - renamed[o]) < _ODDS for o in probabilities
        )

    def result(self, result: FlowResult, flow: Flow) -> FlowResult:
        """Return the renamed results, as results of ``flow``."""
        branches = tuple(
            OutcomeBranch(branch.probability, tuple(map(self.outcome, branch.outcomes)), branch.assuming)
            for branch in result.branches
        )
        return replace(result, flow_id=flow.id, branches=branches)


@dataclass(frozen=True, slots=True)
class FlowClass:
    """Flows of a class by id: the two that are tested in full, and the others."""

    first: str
    last: str
    others: tuple[tuple[str, Renaming], ...]
    """The ids of the others, each with its renaming from the first flow."""
    last_renaming: Renaming
    foreign: bool = False
    """True if the rules of the services have no constant of the sender."""


def flow_classes(
    facts: Facts, flows: Sequence[Flow], expected: Mapping[str, FlowResult]
) -> tuple[FlowClass, ...]:
    """Return the classes of ``flows`` with at least :data:`FEWEST` members.

    ``expected`` are the simulated results by id, of each flow or of its first packet.
    """
    kinds = Kinds(facts)
    groups: dict[Hashable, list[tuple[Flow, _Constants]]] = {}
    for flow in flows:
        result = expected[flow.id]
        class_of_flow = None if result.is_open or result.dependent else kinds.of(flow)
        if class_of_flow is not None:
            key, constants = class_of_flow
            groups.setdefault(key, []).append((flow, constants))
    return tuple(
        made
        for group in groups.values()
        if len(group) >= FEWEST and (made := _class(group, expected, kinds)) is not None
    )


def _class(
    group: Sequence[tuple[Flow, _Constants]], expected: Mapping[str, FlowResult], kinds: Kinds
) -> FlowClass | None:
    first, constants = group[0]
    wanted = expected[first.id]
    members = []
    for flow, own in group[1:]:
        renaming = Renaming.between(constants, own)
        if renaming.makes(wanted, expected[flow.id]):
            members.append((flow.id, renaming))
    if len(members) + 1 < FEWEST:
        return None
    *others, (last, renaming) = members
    return FlowClass(first.id, last, tuple(others), renaming, kinds.is_foreign(first))


class Kinds:
    """The kinds of a node's services and of flows to them."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        rules = [r for table in facts.other_rules.ruleset.tables for c in table.chains for r in c.rules]
        hidden = any(rule.unknown for rule in rules) or any(facts.other_rules.ruleset.set_uses())
        self._known = not hidden
        tests = [test for rule in rules for test in _field_tests(rule)]
        node, family = facts.node, facts.family
        links = [
            (a.network, (i.name, True)) for i in node.interfaces for a in i.addresses if a.family is family
        ]
        routes = [(r.dst, (r.dev, r.via is None)) for r in node.main_routes(family)]
        self._routes = sorted((*links, *routes), key=lambda row: row[0].size)
        ranges = [r for r in (facts.service_range, facts.state.pods) if isinstance(r, Interval)]
        native = facts.native_tests
        self._networks = _by_mask(native.addresses, (*ranges, *_values(tests, _ADDRESSES)))
        self._lookups = Lookups(node, family) if native.routes else None
        self._ports = _by_mask(native.ports, tuple(_values(tests, _PORTS)))
        self._clients = tuple(client.address for client in facts.clients())
        self._shared = _shared_places(facts)
        self._of_service: dict[Service, Hashable] = {}
        self._of_address: dict[int, Hashable] = {}

    def of(self, flow: Flow) -> tuple[Hashable, _Constants] | None:
        """Return a flow's class and its constants; None if it uses no service, or a unique one.

        Two flows of a class have the same packets apart from constants, and equal constants at the same
        positions. No other rule and no route distinguishes a constant from its counterpart. Their services
        have the same properties, and later packets go to addresses of these services or of the client. An
        ICMP error may end a connection, after which a reply's source port, that of a service, is replaced.
        """
        packet = flow.first.packet
        services, place = self._services(packet)
        if not self._known or not services or not self._shared.isdisjoint(services):
            return None
        addresses = [packet.src, packet.dst]
        ports: list[object] = [packet.sport, packet.dport]
        for service in services:
            # The order of two endpoints with the same properties makes no difference.
            endpoints = sorted(service.endpoints, key=lambda e: (self._endpoint(e), e.address != packet.src))
            addresses += [-1 if service.cluster_ip is None else service.cluster_ip]
            addresses += [*service.external_addresses, *(e.address for e in endpoints)]
            ports += [service.port, service.node_port, service.health_check_port]
            ports += [e.port for e in endpoints]
        later = [step for step in flow.steps[1:] if isinstance(step, Send)]
        if any(send.packet.dst not in addresses for send in later):
            return None
        addresses += [address for send in later for address in (send.packet.src, send.packet.dst)]
        ports += [port for send in later for port in (send.packet.sport, send.packet.dport)]
        senders = [packet.src, *(send.packet.src for send in later)]
        ranges = tuple(a in r for a in senders for s in services for r in s.source_ranges or ())
        key = (
            known_difference(flow),
            place,
            tuple(map(_but_constants, flow.steps)),
            tuple(map(self._service, services)),
            ranges,
            tuple(map(self._address, senders)),
            tuple([self._address(send.packet.dst) for send in later]),
            tuple([self._port(p) for s in (flow.first, *later) for p in (s.packet.sport, s.packet.dport)]),
            tuple(map(addresses.index, addresses)),
            tuple(map(ports.index, ports)),
            any(isinstance(step, IcmpError) for step in flow.steps)
            and tuple([picked_range(port) for port in ports if isinstance(port, int)]),
        )
        return key, (tuple(addresses), tuple(ports))

    def is_foreign(self, flow: Flow) -> bool:
        """Return whether the rules of a flow's services have no constant of its sender."""
        packet = flow.first.packet
        services, _ = self._services(packet)
        return not any(
            service.source_ranges or packet.src in {endpoint.address for endpoint in service.endpoints}
            for service in services
        )

    def _services(self, packet: Packet) -> tuple[tuple[Service, ...], str]:
        """Return the services at a packet's destination, and the kind of that destination."""
        facts = self._facts
        service, there = facts.by_cluster_ip(packet), facts.at_cluster_ip(packet.dst)
        if service is not None:
            return there, f"cluster {there.index(service)}"
        if packet.dst in facts.cluster_ips:
            return there, "elsewhere"
        service = facts.by_external(packet)
        if service is not None:
            return (service,), f"external {service.external_addresses.index(packet.dst)}"
        service = facts.by_node_port(packet)
        if service is not None and (facts.is_own(packet.dst) or facts.is_loopback(packet.dst)):
            return (service,), f"node port at {packet.dst}"
        return (), ""

    def _service(self, service: Service) -> Hashable:
        if service not in self._of_service:
            self._of_service[service] = self._properties(service)
        return self._of_service[service]

    def _properties(self, service: Service) -> Hashable:
        endpoints = tuple(sorted(map(self._endpoint, service.endpoints)))
        clients = (*self._clients, *(e.address for e in service.endpoints))
        ranges = service.source_ranges
        addresses = (service.cluster_ip, *service.external_addresses)
        ports = (service.port, service.node_port, service.health_check_port)
        return (
            service.protocol,
            service.affinity,
            service.external_local,
            service.internal_local,
            service.allows_node,
            service.endpoints_elsewhere,
            tuple(map(len, (service.external_ips, service.load_balancer_ips, service.outside_ips))),
            tuple(None if a is None else self._address(a) for a in addresses),
            tuple(None if p is None else self._port(p) for p in ports),
            endpoints,
            None if ranges is None else tuple((r.size, tuple(a in r for a in clients)) for r in ranges),
            tuple(line.part for line in service.lines),
        )

    def _endpoint(self, endpoint: Endpoint) -> str:
        """Return an endpoint's properties, in a sortable form."""
        return repr(
            (self._address(endpoint.address), self._port(endpoint.port), endpoint.local, endpoint.draining)
        )

    def _address(self, address: int) -> Hashable:
        facts = self._of_address.get(address)
        if facts is None:
            inside = _cells(address, self._networks)
            own = self._facts.is_own(address), address in self._facts.cluster_ips
            looked_up = None if self._lookups is None else self._lookups.of(address)
            facts = self._of_address[address] = (self._route(address), own, inside, looked_up)
        return facts

    def _route(self, address: int) -> Hashable:
        """Return the most specific route to an address, without its gateway."""
        behind = self._facts.places.behind(address)
        return behind, next((onward for dst, onward in self._routes if address in dst), None)

    def _port(self, port: object) -> Hashable:
        return _cells(port, self._ports) if isinstance(port, int) else port


def _by_mask(
    native: Mapping[int | None, tuple[Interval, ...]], known: tuple[Interval, ...]
) -> tuple[tuple[int | None, Cells], ...]:
    """Return the cells of the values under each mask; ``known`` are further intervals without a mask."""
    intervals = {**native, None: (*native.get(None, ()), *known)}
    return tuple((mask, Cells(values)) for mask, values in intervals.items())


def _cells(value: int, by_mask: tuple[tuple[int | None, Cells], ...]) -> tuple[int, ...]:
    return tuple([cells.of(value if mask is None else value & mask) for mask, cells in by_mask])


def known_difference(flow: Flow) -> str:
    """Return the known difference that a flow is made for; empty for a flow of a corpus."""
    difference, slash, _ = flow.id.partition("/")
    return difference if slash else ""


def _but_constants(step: Step) -> Step:
    """Return a step without the addresses and ports of its packet."""
    if not isinstance(step, Send):
        return step
    return replace(step, packet=replace(step.packet, src=0, dst=0, sport=None, dport=None))


def _shared_places(facts: Facts) -> frozenset[Service]:
    """Return services that share an address and port with another service or with the node."""
    owners: dict[tuple[object, ...], list[Service]] = {}
    shared: list[Service] = []
    for service in facts.services:
        number = number_of(service)
        addresses = [a for a in (service.cluster_ip, *service.external_addresses) if a is not None]
        for address in addresses:
            owners.setdefault((address, number, service.port), []).append(service)
        if service.node_port is not None:
            owners.setdefault((number, service.node_port), []).append(service)
        if any(map(facts.is_own, addresses)):
            shared.append(service)
    shared += (service for services in owners.values() if len(services) > 1 for service in services)
    return frozenset(shared)


def _field_tests(rule: Rule) -> Iterator[FieldTest]:
    inner: Iterator[Test] = (
        t for test in rule.tests for t in (test.tests if isinstance(test, AnyOf) else (test,))
    )
    return (test for test in inner if isinstance(test, FieldTest))


def _values(tests: Sequence[FieldTest], fields: tuple[Field, ...]) -> Iterator[Interval]:
    return (v for test in tests if test.field in fields for v in test.values if isinstance(v, Interval))
