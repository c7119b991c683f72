"""The number of kernel objects depends on the shapes of chains, not on the number of services."""

from __future__ import annotations

import pytest

from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


def objects(family: Family, services: int, level: int) -> tuple[int, int, int]:
    """Chains, maps with sets, and rules of a cluster in which every eighth service has each feature."""
    some = services // 8
    shape = Shape(
        family=family,
        services=services,
        node_ports=2 * some,
        load_balancers=2 * some,
        external_ips=some,
        external_local=some,
        internal_local=some,
        source_ranges=some,
        without_endpoints=some,
        udp=2 * some,
        sctp=4,
    )
    rules = kube_proxy_rules(draw_cluster(shape))
    text = emit(lower(read_ruleset(rules.encode(), name="rules"), level=level)).text
    blocks = [line.split()[0] for line in text.split("\n") if line.endswith(" {") and line[1:2].isalpha()]
    lines = [line for line in text.split("\n") if line.startswith("\t\t") and "comment" in line]
    rules_ = sum(not line.startswith(("\t\t\t", "\t\tcomment")) for line in lines)
    return blocks.count("chain"), blocks.count("map") + blocks.count("set"), rules_


@pytest.mark.parametrize("family", Family)
def test_twice_the_services_are_no_more_objects(family: Family) -> None:
    few, many = (objects(family, services, 2) for services in (80, 160))
    # A shape more or less, as services with all features happen to have endpoints here or elsewhere.
    assert all(more <= less + 3 for less, more in zip(few, many, strict=True))
    assert all(count < most for count, most in zip(many, (70, 60, 130), strict=True))
    assert all(count > least for count, least in zip(objects(family, 80, 1), (300, 60, 500), strict=True))


def test_session_affinity_reached_by_one_address_is_no_more_objects() -> None:
    def of(services: int) -> int:
        shape = Shape(services=services, affinity=services)
        rules = kube_proxy_rules(draw_cluster(shape))
        return emit(lower(read_ruleset(rules.encode(), name="rules"), level=2)).text.count("\tset ")

    assert of(12) == of(24)
