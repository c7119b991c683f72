"""Rulesets for faults: rules on nodes, with the flows that must show every fault.

``kind`` is the kind node with its regression cases; ``cluster`` and ``cluster6`` are a small drawn cluster
that uses all features of kube-proxy's rules (affinity, source ranges, node ports, policies Local, services
without endpoints), with the flows that are generated from its rules; ``kube-real`` and ``kube-real6`` are the
dump of a real kube-proxy, and ``kube-ipvs`` and ``kube-ipvs6`` that of one in its ipvs mode, also with
generated flows. ``headers`` and ``headers6`` are rules that test fields of the header and the frame, with
their case; ``netmap``, ``connbytes`` and their IPv6 forms are those of ``-j NETMAP`` and ``-m connbytes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from backends.model.flow import Again, Flow, IcmpError, Reply, Send
from backends.model.packet import Icmp6Type, IcmpType, Packet
from harness.corpus.formats.rulefile import InputOptions
from harness.diff.batch import Batch
from nfparity.inputs.batches import load_batches, load_node
from nfparity.inputs.rules import load_rules
from tests.lab.kuberules import Shape
from tests.lab.selfcheck import Subject, cluster_subject, subject_of
from translate.errors import InputError
from translate.ir import Family, Protocol

__all__ = ["CLUSTER", "RULESETS", "batches_of"]

CLUSTER: Final = Shape(
    services=7,
    endpoints=3,
    node_ports=1,
    load_balancers=2,
    source_ranges=1,
    external_local=2,
    internal_local=1,
    affinity=1,
    without_endpoints=2,
    udp=2,
    base=False,
    seed=272,
)
"""A few services with every feature of a Service, so that many faults can be planted."""

_MARK: Final = 0x4000
_LOOPBACK: Final = 1
"""``::1``."""
_RULESETS: Final = "tests/corpus/rulesets"


def batches_of(name: str) -> tuple[Batch, ...]:
    """Return the batches of a ruleset, the largest first; InputError for an unknown one."""
    if name not in RULESETS:
        raise InputError(f"unknown rules {name!r}; known are {', '.join(RULESETS)}")
    return RULESETS[name]()


def _kind() -> tuple[Batch, ...]:
    rulesets = []
    for batch in load_batches(rules=None, corpus="tests/corpus/cases", node=None):
        flows = tuple(flow for flow in batch.flows if flow.id.startswith("kind-"))
        if flows:
            rulesets.append(replace(batch, flows=flows))
    return tuple(sorted(rulesets, key=lambda batch: -len(batch.flows)))


def _cluster(family: Family) -> tuple[Batch, ...]:
    return _batches(cluster_subject(f"cluster-{family.value}", replace(CLUSTER, family=family)))


def _dumped(family: Family, rules: str, node: str) -> tuple[Batch, ...]:
    rules, node = f"{_RULESETS}/{rules}", f"{_RULESETS}/{node}"
    ruleset = load_rules(rules, InputOptions(family=family))
    return _batches(subject_of(rules, ruleset, load_node(node, ruleset)))


def _case(name: str) -> tuple[Batch, ...]:
    return tuple(load_batches(rules=None, corpus=f"tests/corpus/{name}", node=None))


def _batches(subject: Subject) -> tuple[Batch, ...]:
    flows = (*subject.flows, *_again(subject.flows), *_pings(subject.flows), *_marked(subject.flows))
    return (
        Batch(rules_path=subject.name, rules=subject.ruleset, node=subject.node, flows=flows, corpus=None),
    )


def _again(flows: Iterable[Flow]) -> Iterable[Flow]:
    """Return flows that can show faults and that a generated corpus lacks.

    Each use of a service is repeated in several forms. With three more connections of the same client, it
    shows affinity. With a router's ICMP error about an unreachable endpoint, it shows the translation of the
    quoted packet. With the bit of the mark that rules set, it is sent by the node, because no received packet
    has a mark; the node also sends with the address of an endpoint, as a transparent proxy does. A connection
    to IPv6's loopback address shows that node ports do not answer there.
    """
    for flow in flows:
        packet = flow.first.packet
        if not flow.id.startswith("service-") or not isinstance(packet.sport, int):
            continue
        more = (replace(packet, sport=packet.sport + 10000 * n) for n in (1, 2, 3))
        sends = tuple(Send(packet=copy, entry=flow.first.entry) for copy in more)
        yield replace(flow, id=f"{flow.id}-again", steps=(flow.first, *sends))
        error = IcmpError(type=IcmpType.DEST_UNREACHABLE, code=1)
        if packet.family is Family.IP6:
            error = IcmpError(type=Icmp6Type.DEST_UNREACHABLE, code=3)
        yield replace(flow, id=f"{flow.id}-error", steps=(flow.first, error))
        if flow.id.endswith("-node") and packet.family is Family.IP6:
            local = Send(packet=replace(packet, src=_LOOPBACK, dst=_LOOPBACK), entry=None)
            yield replace(flow, id=f"{flow.id}-localhost", steps=(local,))
        if flow.first.entry is None or "-endpoint" in flow.id:
            marked = Send(packet=replace(packet, mark=_MARK), entry=None)
            yield replace(flow, id=f"{flow.id}-marked", steps=(marked,))


def _pings(flows: Iterable[Flow]) -> Iterable[Flow]:
    """Return masqueraded pings with their answers; rules of services test ports, which pings lack.

    The node sends them with the mark, because no received packet has one.
    """
    for flow in flows:
        packet = flow.first.packet
        if not flow.id.startswith("service-") or not flow.id.endswith("-elsewhere-node"):
            continue
        icmp = Protocol.ICMP if packet.family is Family.IP else Protocol.ICMPV6
        ping = Packet(family=packet.family, src=packet.src, dst=packet.dst, proto=icmp)
        kind = IcmpType.ECHO_REQUEST if packet.family is Family.IP else Icmp6Type.ECHO_REQUEST
        ping = replace(ping, icmp_type=int(kind), icmp_code=0, icmp_id=packet.sport, mark=_MARK)
        yield Flow(id=f"{flow.id}-ping", steps=(Send(packet=ping, entry=None), Reply(), Again()))


def _marked(flows: Sequence[Flow]) -> Iterable[Flow]:
    """Return marked packets of the node, for rules without services that :func:`_again` could use."""
    if any(flow.id.startswith("service-") for flow in flows):
        return
    for flow in flows:
        if flow.first.entry is None:
            marked = Send(packet=replace(flow.first.packet, mark=_MARK), entry=None)
            yield replace(flow, id=f"{flow.id}-marked", steps=(marked,))


RULESETS: Final[dict[str, Callable[[], tuple[Batch, ...]]]] = {
    "kind": _kind,
    "cluster": lambda: _cluster(Family.IP),
    "cluster6": lambda: _cluster(Family.IP6),
    "kube-real": lambda: _dumped(Family.IP, "kube-real/rules.iptables-save", "kube-real/node.json"),
    "kube-real6": lambda: _dumped(Family.IP6, "kube-real/rules.ip6tables-save", "kube-real/node6.json"),
    "kube-ipvs": lambda: _dumped(Family.IP, "kube-ipvs/rules.iptables-save", "kube-ipvs/node.json"),
    "kube-ipvs6": lambda: _dumped(Family.IP6, "kube-ipvs6/rules.ip6tables-save", "kube-ipvs6/node.json"),
    "headers": lambda: _case("cases/header-fields"),
    "headers6": lambda: _case("cases6/header-fields6"),
    "netmap": lambda: _case("cases/netmap"),
    "netmap6": lambda: _case("cases6/netmap6"),
    "connbytes": lambda: _case("cases-without-tc/connbytes"),
    "connbytes6": lambda: _case("cases-without-tc/connbytes6"),
}
"""Every ruleset by name."""
