"""Flows that use every service of a cluster: nothing is left out, and the simulator says what they do."""

from __future__ import annotations

import pytest

from backends.model.outcome import Verdict
from tests.lab.kuberules import Cluster, Shape, draw_cluster, service_uses
from tests.lab.large import Expected, large_shape, large_subject
from translate.ir import Family


@pytest.fixture(params=Family, scope="module")
def cluster(request: pytest.FixtureRequest) -> Cluster:
    return draw_cluster(large_shape(120, request.param))


def test_every_destination_of_every_service_is_used_from_each_place(cluster: Cluster) -> None:
    uses = list(service_uses(cluster))
    assert len({f.id for f in uses}) == len(uses)
    pods, asked = cluster.pods, set[tuple[int, int | None, str]]()
    for flow in uses:
        packet, entry = flow.first.packet, flow.first.entry
        place = "node" if entry is None else "pod" if packet.src in pods else "outside"
        asked.add((packet.dst, packet.dport if isinstance(packet.dport, int) else None, place))
    for service in cluster.services:
        destinations = {(a, service.port) for a in (*service.external_ips, *service.load_balancer_ips)}
        destinations.add((service.cluster_ip, service.port))
        if service.node_port:
            destinations.add((cluster.node_ip, service.node_port))
        for address, port in destinations:
            assert {(address, port, place) for place in ("pod", "outside", "node")} <= asked
        if service.health_check_port:
            assert (cluster.node_ip, service.health_check_port, "outside") in asked


def test_the_cluster_has_everything_that_a_service_can_have(cluster: Cluster) -> None:
    for feature in (
        "node_port",
        "external_ips",
        "load_balancer_ips",
        "source_ranges",
        "affinity",
        "external_local",
        "internal_local",
        "health_check_port",
    ):
        assert any(getattr(s, feature) for s in cluster.services), feature
    assert any(not s.endpoints for s in cluster.services)
    assert {s.protocol.value for s in cluster.services} == {"tcp", "udp", "sctp"}


@pytest.mark.parametrize("family", Family)
def test_a_service_with_endpoints_is_reached_from_a_pod_and_one_without_refuses(family: Family) -> None:
    subject = large_subject(large_shape(60, family))
    expected = Expected.ask(subject.batch)
    assert set(expected.results) == {f.id for f in subject.batch.flows}
    for service in subject.cluster.services:
        (result,) = (
            r for i, r in expected.results.items() if i == f"{service.name}-{service.protocol}/cluster-ip/pod"
        )
        verdicts = {b.outcomes[0].verdict for b in result.branches}
        served = service.local_endpoints if service.internal_local else service.endpoints
        if served:
            assert verdicts <= {Verdict.FORWARD, Verdict.LOCAL}
        else:
            assert verdicts == ({Verdict.DROP} if service.endpoints else {Verdict.REJECT})


def test_affinity_is_seen_in_two_connections_of_one_client() -> None:
    shape = Shape(services=4, affinity=4, base=False)
    flows = [f for f in service_uses(draw_cluster(shape)) if f.id.endswith("cluster-ip/pod")]
    assert [len(f.steps) for f in flows] == [4] * 4


@pytest.mark.parametrize("services", [1, 10, 1000, 10000])
def test_a_shape_of_any_size_can_be_drawn(services: int) -> None:
    for family in Family:
        assert len(draw_cluster(large_shape(services, family)).services) == services + 4
