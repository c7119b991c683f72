"""The tc program's maps change while it is loaded: what they hold then, and what becomes of packets."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply
from backends.model.node import Node
from backends.model.packet import Packet
from backends.replay.session import KernelSession, open_session
from backends.simulator import SimulatorBackend
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.testbed.tapnode import TapNode
from harness.corpus.random.flows import random_flows
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from tests.lab.kuberules import Cluster, Endpoint, Shape, draw_cluster, kube_proxy_rules
from translate.bpf import BpfChange, BpfOutput, change_between, emit
from translate.bpf.layout.maps import MapContents, SetContents
from translate.ir import Family, Ruleset
from translate.passes import lower
from translate.read import read_ruleset


@pytest.fixture(scope="module", autouse=True)
def _needs_bcc() -> None:
    require(TcEbpfBackend())


class WatchedLoader(TcEbpfLoader):
    """Compares what is in the kernel with what a fresh load would put there."""

    def change(self, change: BpfChange) -> None:  # type: ignore[override]
        super().change(change.live())
        assert self.dataplane is not None
        loaded: list[MapContents | SetContents] = [*change.output.maps, *change.output.sets]
        for contents in loaded:
            assert dict(self.dataplane.map(contents.name).entries()) == dict(contents.packed())


class KeepingLoader(WatchedLoader):
    """Keeps connections from one flow to the next."""

    def forget_connections(self, tap: TapNode) -> None:
        pass

    def forget_one(self, tap: TapNode, sent: Packet) -> bool:
        return True


def ruleset_of(cluster: Cluster) -> Ruleset:
    return read_ruleset(kube_proxy_rules(cluster).encode(), name="rules", family=cluster.family)


def output_of(ruleset: Ruleset) -> BpfOutput:
    return emit(lower(ruleset, level=2))


def insist(session: KernelSession, ruleset: Ruleset, node: Node, flows: list[Flow]) -> None:
    """The simulator has the rules as they are now."""
    with SimulatorBackend().open(Job(rules=ruleset, node=node)) as reference:
        expected = list(reference.replay(flows))
    wrong = [
        (str(flow.first.packet), [str(m) for m in compare(flow, e, o)])
        for flow, e, o in zip(flows, expected, session.replay(flows), strict=True)
        if compare(flow, e, o)
    ]
    assert wrong == []


def changed(cluster: Cluster, rng: random.Random) -> Cluster:
    """Endpoints that move, a service at another port, one gone, all in another order."""
    services = list(cluster.services)
    for index in rng.sample(range(len(services)), 4):
        service = services[index]
        if service.endpoints:
            first, *others = service.endpoints
            moved = Endpoint(first.address + 1 + rng.randrange(50), first.port, first.local)
            service = replace(service, endpoints=(moved, *others))
        services[index] = replace(service, port=service.port + rng.randrange(2))
    if len(services) > 30:
        services.pop(rng.randrange(len(services)))
    rng.shuffle(services)
    return replace(cluster, services=tuple(services))


@pytest.mark.parametrize("family", [Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def test_every_change_leaves_what_a_fresh_load_would(family: Family) -> None:
    rng = random.Random(5)
    shape = Shape(
        family=family, services=36, node_ports=4, load_balancers=4, affinity=3, without_endpoints=4, udp=6
    )
    cluster = draw_cluster(shape)
    now = output_of(ruleset_of(cluster))
    changes = 0
    with open_session(cluster.node, WatchedLoader(now)) as session:
        for seed in range(8):
            wanted = changed(cluster, rng)
            change = change_between(now, output_of(ruleset_of(wanted)))
            if change.replacement:
                continue  # the last service of a shape has gone
            session.change(change)
            changes += bool(change.written) and bool(change.deleted)
            cluster, now = wanted, change.output
            flows = [
                flow
                for flow in random_flows(ruleset_of(cluster), cluster.node, seed=seed, count=60)
                if flow.first.packet.src != 1  # ::1, to which the stack routes no replies
            ]
            insist(session, ruleset_of(cluster), cluster.node, flows)
    assert changes >= 4


def test_an_established_connection_keeps_its_endpoint(kind_node: Node, flows) -> None:
    def output(endpoint: str) -> BpfOutput:
        text = (
            "*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n:B - [0:0]\n"
            "-A PREROUTING -d 10.96.0.10/32 -p udp -m udp --dport 53 -j A\n"
            "-A PREROUTING -d 10.96.0.11/32 -p udp -m udp --dport 53 -j B\n"
            f"-A A -p udp -j DNAT --to-destination {endpoint}:53\n"
            "-A B -p udp -j DNAT --to-destination 10.244.0.7:53\nCOMMIT\n"
        )
        return output_of(read_ruleset(text.encode(), name="rules"))

    old, new = output("10.244.0.3"), output("10.244.0.4")
    with open_session(kind_node, KeepingLoader(old)) as session:
        asked = flows.udp("10.244.0.5", "10.96.0.10", 53)
        before, _ = flows.run(session, asked, "pod5", Reply())
        session.change(change_between(old, new))
        same, answered = flows.run(session, asked, "pod5", Reply())
        (other,) = flows.run(session, replace(asked, sport=40001), "pod5")
    assert [before.out, same.out, other.out] == ["dns3", "dns3", "dns4"]
    assert answered.src == flows.ip("10.96.0.10")


def test_a_program_that_would_have_to_be_another_is_not_changed(kind_node: Node) -> None:
    old, new = output_of(read_ruleset(b"", name="old")), output_of(read_ruleset(_DROP, name="new"))
    change = change_between(old, new)
    assert change.replacement
    with pytest.raises(ValueError, match="the change needs a new program"):
        change.live()
    with pytest.raises(ValueError, match="nothing is loaded"):
        TcEbpfLoader(old).change(change_between(old, old).live())


_DROP = b"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j DROP\nCOMMIT\n"
