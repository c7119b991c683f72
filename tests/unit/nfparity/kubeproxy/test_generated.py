"""Clusters that were drawn, written as rules and recovered again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfparity.kubeproxy import Service as Seen
from nfparity.kubeproxy import recover
from tests.lab.kuberules import Cluster, Service, Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family
from translate.read import read_ruleset

SHAPES = (
    Shape(services=30, node_ports=12, load_balancers=8, source_ranges=6, external_local=9, seed=3),
    Shape(services=30, affinity=12, internal_local=9, without_endpoints=6, external_ips=7, udp=5, sctp=4),
    Shape(
        services=25,
        endpoints=1,
        load_balancers=20,
        external_local=20,
        affinity=9,
        without_endpoints=5,
        seed=5,
    ),
    Shape(services=8, node_ports=3, masquerade_all=True, localhost_node_ports=False, masquerade_agent=True),
    Shape(services=40, endpoints=30, external_local=3, node_ports=5, internal_local=4, seed=9),
)


def rough(service: Service | Seen) -> tuple[object, ...]:
    """Return the facts about a service that all of its rules show; endpoints in any order."""
    near = {(e.address, e.port) for e in service.endpoints if e.local}
    everywhere = not service.internal_local or service.external
    spread = {(e.address, e.port) for e in service.endpoints}
    policy = service.external_local or service.internal_local
    return (
        service.protocol,
        service.cluster_ip,
        service.port,
        service.node_port,
        service.health_check_port,
        spread if everywhere else near,
        near if policy else None,
    )


@pytest.mark.parametrize("family", tuple(Family))
@pytest.mark.parametrize("shape", SHAPES)
def test_a_drawn_cluster_is_recovered(shape: Shape, family: Family) -> None:
    cluster: Cluster = draw_cluster(replace(shape, family=family))
    text = kube_proxy_rules(cluster)
    state = recover(read_ruleset(text.encode(), name="rules", family=family))
    own = {r.chain for r in state.remainder}
    assert not own
    seen = {s.name: s for s in state.services}
    assert seen.keys() == {s.name for s in cluster.services}
    for told in cluster.services:
        one = seen[told.name]
        if one.external_local is not None and one.internal_local is not None:
            assert rough(one) == rough(told), told.name
            assert one.external_local == (told.external_local and told.external)
            assert one.internal_local == told.internal_local
        else:
            assert not told.endpoints
        assert one.affinity in (None, told.affinity)
        assert bool(one.affinity is None) == (not one.endpoints)
        if one.source_ranges is not None:
            assert set(one.source_ranges) == set(told.source_ranges if told.endpoints else ())
        assert set(one.external_addresses) == {*told.external_ips, *told.load_balancer_ips}
        assert set(one.load_balancer_ips) <= set(told.load_balancer_ips)
    assert state.masquerade_all == shape.masquerade_all
    assert state.pods == (None if shape.masquerade_all else cluster.pods)
    assert state.localhost_node_ports == (shape.localhost_node_ports and family is Family.IP)
