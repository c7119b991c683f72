"""The search of routing rules, and the look-ups for which it is made."""

from __future__ import annotations

import json

import pytest

from backends.model.node import Node, node_from_json
from backends.simulator.routing.ip4 import Router
from backends.simulator.routing.ip6 import Router6
from backends.simulator.routing.path import NoRoute, Path
from translate.ir import AddressType, Family, parse_address


def ip(text: str) -> int:
    return parse_address(Family.IP6 if ":" in text else Family.IP, text)


def node(*rules: dict[str, object], **more: object) -> Node:
    data = {
        "interfaces": {
            "eth0": ["192.0.2.10/24", "2001:db8:a::10/64"],
            "eth1": ["198.51.100.10/24", "2001:db8:b::10/64"],
        },
        "routes": [
            {"dst": "default", "via": "192.0.2.1", "dev": "eth0"},
            {"dst": "default", "via": "198.51.100.1", "dev": "eth1", "table": 100},
            {"dst": "203.0.113.0/28", "type": "unreachable", "table": 100},
            {"dst": "203.0.113.16/28", "type": "prohibit", "table": 100},
            {"dst": "203.0.113.32/28", "type": "blackhole", "table": 100},
            {"dst": "203.0.113.48/28", "type": "throw", "table": 100},
            {"dst": "default", "via": "2001:db8:a::1", "dev": "eth0"},
            {"dst": "default", "via": "2001:db8:b::1", "dev": "eth1", "table": 100},
        ],
        "rules": list(rules),
        **more,
    }
    return node_from_json(json.dumps(data), name="node")


def out(path: Path | NoRoute) -> str:
    return path.dev if isinstance(path, Path) else path.name


WORLD = "203.0.113.99"
INPUT = [
    ({"priority": 9, "fwmark": "1/0xf", "table": 100}, {"mark": 0x21}, "eth1"),
    ({"priority": 9, "fwmark": "1/0xf", "table": 100}, {"mark": 0x22}, "eth0"),
    ({"priority": 9, "not": True, "fwmark": "1/0xf", "table": 100}, {"mark": 0x22}, "eth1"),
    ({"priority": 9, "from": "192.0.2.0/24", "table": 100}, {}, "eth1"),
    ({"priority": 9, "to": "203.0.113.99/32", "table": 100}, {}, "eth1"),
    ({"priority": 9, "iif": "eth0", "table": 100}, {}, "eth1"),
    ({"priority": 9, "iif": "lo", "table": 100}, {}, "eth0"),
    ({"priority": 9, "oif": "eth1", "table": 100}, {}, "eth0"),
    ({"priority": 9, "table": 100, "suppress_prefixlength": 0}, {}, "eth0"),
    ({"priority": 9, "table": 77}, {}, "eth0"),
    ({"priority": 40000, "table": 100}, {}, "eth0"),
    ({"priority": 9, "action": "unreachable"}, {}, "NET_UNREACHABLE"),
    ({"priority": 9, "action": "prohibit"}, {}, "PROHIBITED"),
    ({"priority": 9, "action": "blackhole"}, {}, "BLACKHOLE"),
    ({"priority": 9, "table": 100}, {"dst": "203.0.113.1"}, "HOST_UNREACHABLE"),
    ({"priority": 9, "table": 100, "suppress_prefixlength": 28}, {"dst": "203.0.113.1"}, "HOST_UNREACHABLE"),
    ({"priority": 9, "table": 100}, {"dst": "203.0.113.17"}, "PROHIBITED"),
    ({"priority": 9, "table": 100}, {"dst": "203.0.113.33"}, "BLACKHOLE"),
    ({"priority": 9, "table": 100}, {"dst": "203.0.113.49"}, "eth0"),
]


@pytest.mark.parametrize(("rule", "packet", "there"), INPUT, ids=range(len(INPUT)))
def test_a_rule_routes_what_it_selects(
    rule: dict[str, object], packet: dict[str, object], there: str
) -> None:
    router = Router(node(rule))
    dst, mark = ip(str(packet.get("dst", WORLD))), packet.get("mark", 0)
    assert isinstance(mark, int)
    assert out(router.route_input(ip("192.0.2.77"), dst, "eth0", mark)) == there


def test_the_local_table_is_asked_in_its_place() -> None:
    late = node(
        {"priority": 50, "table": 100},
        {"priority": 100, "table": "local"},
        {"priority": 32766, "table": "main"},
        default_rules=False,
    )
    assert out(Router(late).route_output(ip("192.0.2.10"))) == "eth1"
    assert out(Router(node()).route_output(ip("192.0.2.10"))) == "lo"
    assert Router(late).address_type(ip("192.0.2.10")) is AddressType.LOCAL


def test_a_new_mark_is_looked_up_with_the_source_of_the_packet() -> None:
    router = Router(node({"priority": 9, "from": "192.0.2.10/32", "fwmark": 1, "table": 100}))
    own = ip("192.0.2.10")
    assert out(router.route_output(ip(WORLD), mark=1)) == "eth0"
    assert out(router.reroute(ip(WORLD), own, mark=1)) == "eth1"
    rule = router.deciding_rule(ip(WORLD), own, 1)
    assert str(rule) == "9: from 192.0.2.10/32 fwmark 0x1 lookup 100"
    assert Router(node()).deciding_rule(ip(WORLD), own, 1) is None


def test_the_way_back_sees_the_mark_if_it_is_asked_to() -> None:
    rule: dict[str, object] = {"priority": 9, "fwmark": 1, "table": 100}
    router = Router(node(rule))
    assert not router.leads_back(ip(WORLD), ip("192.0.2.10"), "eth1")
    assert router.leads_back(ip(WORLD), ip("192.0.2.10"), "eth1", 1)
    strict = {"net.ipv4.conf.eth1.rp_filter": "1"}
    valid = {**strict, "net.ipv4.conf.all.src_valid_mark": "1"}
    for sysctls, there in ((strict, "MARTIAN"), (valid, "lo")):
        checking = Router(node(rule, sysctls=sysctls))
        assert out(checking.route_input(ip(WORLD), ip("198.51.100.10"), "eth1", 1)) == there


def test_a_local_route_makes_every_address_the_nodes_own() -> None:
    routes = [{"dst": "default", "type": "local", "dev": "lo", "table": 7}]
    router = Router(node({"priority": 9, "fwmark": 1, "table": 7}, routes=routes))
    path = router.route_input(ip("192.0.2.77"), ip(WORLD), "eth0", 1)
    assert isinstance(path, Path)
    assert path.local
    assert router.address_type(ip(WORLD)) is AddressType.UNICAST


def test_a_broadcast_address_is_no_source_once_there_are_rules() -> None:
    loud = ip("198.51.100.255")
    assert out(Router(node()).route_input(loud, ip(WORLD), "eth0")) == "eth0"
    ruled = Router(node({"priority": 9, "fwmark": 1, "table": 100}))
    assert out(ruled.route_input(loud, ip(WORLD), "eth0")) == "MARTIAN"


def test_the_default_table_is_asked_after_main() -> None:
    routes = [
        {"dst": "203.0.113.0/24", "type": "unreachable"},
        {"dst": "default", "via": "192.0.2.1", "dev": "eth0", "table": "default"},
    ]
    assert out(Router(node(routes=routes)).route_output(ip(WORLD))) == "eth0"
    refused = Router(node(routes=routes[:1])).route_input(ip("192.0.2.77"), ip(WORLD), "eth0")
    assert refused is NoRoute.HOST_UNREACHABLE


def test_ipv6_chooses_a_source_and_asks_again() -> None:
    rules = (
        {"priority": 9, "from": "2001:db8:a::/64", "table": 100},
        {"priority": 10, "family": "ip6", "action": "prohibit"},
    )
    router, world = Router6(node(*rules)), ip("2001:db8:f::1")
    assert out(router.route_output(world)) == "eth1"
    assert str(router.deciding_rule(world, 0, 0)) == "9: from 2001:db8:a::/64 lookup 100"
    assert out(router.route_output(world, ip("2001:db8:b::10"))) == "FAILED"
    assert router.route_input(ip("2001:db8:b::7"), world, "eth1") is NoRoute.PROHIBITED
