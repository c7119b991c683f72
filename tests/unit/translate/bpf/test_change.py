"""Changes from the maps of one tc program to another's; tests/kernel/test_live_maps.py loads them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tests.lab.kuberules import Cluster, Endpoint, Shape, draw_cluster, kube_proxy_rules
from translate.bpf import BpfOutput, change_between, emit
from translate.bpf.layout.maps import LEAST_ENTRIES, max_entries_for
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

_SHAPE = Shape(
    base=False, services=40, node_ports=6, load_balancers=6, source_ranges=3, without_endpoints=4, udp=20
)


def _translated(text: str, family: Family = Family.IP, *, level: int = 2) -> BpfOutput:
    return emit(lower(read_ruleset(text.encode(), name="rules", family=family), level=level))


def _of(cluster: Cluster) -> BpfOutput:
    return _translated(kube_proxy_rules(cluster), cluster.family)


def _services(*endpoints: str) -> BpfOutput:
    rules = "".join(
        f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination {endpoint}\n"
        for n, endpoint in enumerate(endpoints, 1)
    )
    return _translated(f"*nat\n:PREROUTING ACCEPT [0:0]\n{rules}COMMIT\n")


@pytest.mark.parametrize("family", Family)
def test_services_and_endpoints_are_not_in_the_program(family: Family) -> None:
    cluster = draw_cluster(replace(_SHAPE, family=family))
    rng = random.Random(3)
    services = []
    for service in cluster.services:
        moved = (Endpoint(e.address + 7, e.port + rng.randrange(2), e.local) for e in service.endpoints)
        other = replace(service, endpoints=tuple(moved), port=service.port + rng.randrange(2))
        services.append(replace(other, cluster_ip=service.cluster_ip + 0x100))
    rng.shuffle(services)
    plain = next(service for service in services if service.endpoints and not service.external)
    more = replace(plain, name="another/one:http", cluster_ip=plain.cluster_ip + 0x1000)
    other_cluster = replace(cluster, services=(more, *services))
    old, new = _of(cluster), _of(other_cluster)
    assert kube_proxy_rules(cluster) != kube_proxy_rules(other_cluster)
    assert new.source == old.source
    assert new.maps != old.maps


def test_remarks_are_in_what_is_shown_and_not_in_what_is_compiled() -> None:
    rules = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j DROP\nCOMMIT\n"
    one, other = _translated(rules), _translated(f"# a line more\n{rules}")
    assert one.source == other.source
    assert "/* line 3 */" in one.render()
    assert "/* line 4 */" in other.render()


def test_what_is_the_same_needs_nothing() -> None:
    one = _services("10.244.0.1:80", "10.244.0.2:80")
    change = change_between(one, one)
    assert (change.steps, change.replacement, change.render()) == ((), False, "")


def test_another_endpoint_is_one_entry_written() -> None:
    change = change_between(
        _services("10.244.0.1:80", "10.244.0.2:80"), _services("10.244.0.1:80", "10.244.0.3:80")
    )
    assert (change.written, change.deleted, change.replacement) == (1, 0, False)
    (line,) = change.render().splitlines()
    assert line.startswith("update lookup_0 0a 60 00 02 ")


def test_what_is_called_is_written_first_and_what_calls_is_deleted_first() -> None:
    cluster = draw_cluster(_SHAPE)
    less = replace(cluster, services=tuple(s for s in cluster.services if s is not _plain(cluster)))
    there, back = change_between(_of(less), _of(cluster)), change_between(_of(cluster), _of(less))
    assert not there.replacement
    written, deleted = [s.name for s in there.steps], [s.name for s in back.steps]
    assert written == sorted(written, key=lambda name: int(name.removeprefix("lookup_")))
    assert len(written) > 1
    assert deleted == written[::-1]
    assert all(step.deleted and not step.written for step in back.steps)


def _plain(cluster: Cluster) -> object:
    return next(s for s in cluster.services if s.endpoints and not s.external and not s.affinity)


def test_another_shape_needs_another_program() -> None:
    plain = _services("10.244.0.1:80", "10.244.0.2:80")
    change = change_between(plain, _services("10.244.0.1:80", "10.244.0.2-10.244.0.9:80"))
    assert change.replacement
    assert "int nfparity_ingress(" in change.render()


def test_a_map_that_would_overflow_needs_another_program_and_one_with_room_keeps_its_own() -> None:
    old, new = _services("10.244.0.1:80", "10.244.0.2:80"), _services("10.244.0.1:80", "10.244.0.3:80")
    full = replace(old, maps=tuple(replace(m, max_entries=2) for m in old.maps))
    change = change_between(full, new)
    assert not change.replacement
    assert [m.max_entries for m in change.output.maps] == [2]
    other = _services(*(f"10.244.0.{n}:80" for n in range(1, 4)))
    assert change_between(full, other).replacement
    assert not change_between(old, other).replacement


def test_a_map_takes_twice_what_is_in_it() -> None:
    assert [max_entries_for(n) for n in (0, 1, LEAST_ENTRIES // 2)] == [LEAST_ENTRIES] * 3
    assert max_entries_for(LEAST_ENTRIES // 2 + 1) == 2 * LEAST_ENTRIES
    assert max_entries_for(30_000) == 65536
