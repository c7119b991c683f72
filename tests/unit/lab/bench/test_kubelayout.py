from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lab.bench.kubelayout import kube_proxy_nftables, service_again
from tests.lab.kuberules import Shape, draw_cluster
from translate.errors import InputError


def test_every_service_has_a_key_and_every_endpoint_a_chain() -> None:
    cluster = draw_cluster(Shape(services=20, endpoints=3, udp=10, without_endpoints=2, base=False))
    lines = kube_proxy_nftables(cluster).splitlines()
    keys = [x for x in lines if x.startswith("add element ip kube-proxy service-ips ")]
    none = [x for x in lines if x.startswith("add element ip kube-proxy no-endpoint-services ")]
    chains = {x for x in lines if x.startswith("add chain ip kube-proxy endpoint-")}
    assert (len(keys), len(none), len(chains)) == (18, 2, 54)


def test_a_change_empties_the_chains_that_it_fills() -> None:
    cluster = draw_cluster(Shape(services=2, endpoints=3, base=False))
    text = service_again(cluster, cluster.services[0])
    flushed = {x.split()[4] for x in text.splitlines() if x.startswith("flush chain")}
    filled = {x.split()[4] for x in text.splitlines() if x.startswith("add rule")}
    assert flushed == filled
    assert len(flushed) == 4


def test_what_it_does_not_write_is_refused() -> None:
    cluster = draw_cluster(Shape(services=1, node_ports=1, base=False))
    with pytest.raises(InputError, match="ClusterIP"):
        kube_proxy_nftables(cluster)
    plain = replace(cluster.services[0], node_port=None)
    assert kube_proxy_nftables(replace(cluster, services=(plain,)))
