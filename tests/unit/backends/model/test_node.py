from __future__ import annotations

import pytest

from backends.model.node import Route, node_from_json, node_to_json
from translate.errors import ParseError
from translate.ir import Family, Interval, parse_address

NODE = """{
  "interfaces": {"eth0": ["192.168.0.2/24", "2001:db8::1/64"], "pod0": []},
  "routes": [
    {"dst": "default", "via": "192.168.0.1", "dev": "eth0"},
    {"dst": "10.180.0.0/16", "dev": "pod0"},
    {"dst": "default", "via": "2001:db8::2", "dev": "eth0"}
  ],
  "sysctls": {"net.ipv4.ip_forward": "0"}
}"""


def test_a_node_is_read_and_written_back() -> None:
    node = node_from_json(NODE, name="n")
    assert [str(a) for a in node.interfaces[0].addresses] == ["192.168.0.2/24", "2001:db8::1/64"]
    assert node.interface("pod0") is node.interfaces[1]
    assert node.interface("lo") is None
    assert [r.family for r in node.routes] == [Family.IP, Family.IP, Family.IP6]
    again = node_from_json(node_to_json(node), name="n")
    assert (again.interfaces, again.routes, dict(again.sysctls)) == (
        node.interfaces, node.routes, dict(node.sysctls),
    )  # fmt: skip


def test_groups_of_interfaces_are_read_and_written_back() -> None:
    node = node_from_json('{"interfaces": {"a": [], "b": []}, "groups": {"b": 7}}', name="n")
    assert [node.group_of(name) for name in ("a", "b", "lo")] == [0, 7, 0]
    assert node_from_json(node_to_json(node), name="n").interfaces == node.interfaces


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ('{"b": 7}', "the node has no interface b"),
        ('{"a": 4294967296}', "expected a number from 0 to 4294967295"),
        ('{"a": true}', "expected a number from 0 to 4294967295"),
    ],
)
def test_a_wrong_group(groups: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        node_from_json(f'{{"interfaces": {{"a": []}}, "groups": {groups}}}', name="n")
    assert said in str(caught.value)


def test_a_sysctl_that_is_not_given_has_its_default() -> None:
    node = node_from_json(NODE, name="n")
    assert node.sysctl("net.ipv4.ip_forward") == "0"
    assert node.sysctl("net.netfilter.nf_conntrack_tcp_loose") == "1"
    with pytest.raises(KeyError):
        node.sysctl("net.ipv4.tcp_ecn")


def test_a_node_with_a_default_route_and_no_rules_routes_everything() -> None:
    node = node_from_json(NODE, name="n")
    assert node.routes_everything(Family.IP)
    assert node.routes_everything(Family.IP6)
    route = '{"dst": "default", "via": "192.168.0.1", "dev": "eth0"'
    for other in (
        '{"dst": "10.0.0.0/8", "dev": "eth0"',
        '{"dst": "default", "type": "blackhole"',
        f'{route}, "table": 7',
    ):
        assert not node_from_json(NODE.replace(route, other), name="n").routes_everything(Family.IP)
    rules = '"rules": [{"priority": 100, "table": 7, "fwmark": 1}], "sysctls"'
    assert not node_from_json(NODE.replace('"sysctls"', rules), name="n").routes_everything(Family.IP)


def test_a_route_says_what_it_is() -> None:
    dst = Interval.prefix(parse_address(Family.IP, "10.0.0.0"), 8, 32)
    via = parse_address(Family.IP, "192.168.0.1")
    assert str(Route(family=Family.IP, dst=dst, dev="eth0", via=via)) == "10.0.0.0/8 via 192.168.0.1 dev eth0"
    assert str(Route(family=Family.IP, dst=dst, dev="eth0")) == "10.0.0.0/8 dev eth0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "expected an object"),
        ("{}", "interfaces"),
        ('{"interfaces": {"lo": []}}', "'lo' is not a usable interface name"),
        ('{"interfaces": {"a-name-that-is-too-long": []}}', "not a usable interface name"),
        (
            '{"interfaces": {"a": ["10.0.0.300/8"]}}',
            "interfaces.a[0]: expected an address and its prefix length",
        ),
        ('{"interfaces": {"a": []}, "extra": 1}', "unknown key 'extra'"),
        (
            '{"interfaces": {"a": []}, "routes": [{"dst": "10.0.0.0/8", "dev": "b"}]}',
            "node.json:1:60: routes[0].dev: 'b' is not",
        ),
        ('{"interfaces": {"a": []}, "routes": [{"dst": "10.0.0.1/8", "dev": "a"}]}', "host bits"),
        ('{"interfaces": {"a": []}, "routes": [{"dev": "a"}]}', "routes[0]: expected an object with dst"),
        ('{"interfaces": {"a": []}, "routes": 5}', "routes: expected a list"),
        ('{"interfaces": {"a": []}, "routes": ["default"]}', "routes[0]: expected an object"),
        (
            '{"interfaces": {"a": []}, "routes": [{"dst": "10.0.0.0/8", "via": "::1", "dev": "a"}]}',
            "different families",
        ),
    ],
)
def test_what_is_wrong_with_a_node_is_said(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        node_from_json(text, name="node.json")
    assert said in str(caught.value)
    assert "node.json" in str(caught.value)


RULES = """{
  "interfaces": {"eth0": ["192.168.0.2/24", "2001:db8::1/64"], "wg0": []},
  "routes": [
    {"dst": "default", "via": "192.168.0.1", "dev": "eth0"},
    {"dst": "default", "dev": "wg0", "table": 51820},
    {"dst": "default", "family": "ip6", "dev": "wg0", "table": 51820},
    {"dst": "10.9.0.0/16", "type": "blackhole"},
    {"dst": "0.0.0.0/0", "type": "local", "dev": "lo", "table": 7},
    {"dst": "2001:db8:1::/48", "type": "throw", "table": "default"}
  ],
  "rules": [
    {"priority": 32765, "not": true, "fwmark": 51820, "table": 51820},
    {"priority": 32764, "table": "main", "suppress_prefixlength": 0},
    {"priority": 10, "from": "10.0.0.0/8", "to": "192.0.2.1/32", "fwmark": "0x1/0xff", "iif": "eth0",
     "oif": "wg0", "action": "prohibit"},
    {"priority": 0, "family": "ip6", "iif": "lo", "action": "unreachable"}
  ]
}"""


def test_routing_rules_are_in_order_of_priority() -> None:
    node = node_from_json(RULES, name="n")
    assert [str(r) for r in node.rules_of(Family.IP)] == [
        "0: from all lookup local",
        "10: from 10.0.0.0/8 to 192.0.2.1/32 fwmark 0x1/0xff iif eth0 oif wg0 prohibit",
        "32764: from all lookup main suppress_prefixlength 0",
        "32765: not from all fwmark 0xca6c lookup 51820",
        "32766: from all lookup main",
        "32767: from all lookup default",
    ]
    assert [str(r) for r in node.rules_of(Family.IP6)] == [
        "0: from all lookup local",
        "0: from all iif lo unreachable",
        "32766: from all lookup main",
    ]
    assert [str(r) for r in node.routes[1:]] == [
        "0.0.0.0/0 dev wg0 table 51820",
        "::/0 dev wg0 table 51820",
        "blackhole 10.9.0.0/16",
        "local 0.0.0.0/0 dev lo table 7",
        "throw 2001:db8:1::/48 table default",
    ]
    assert node.main_routes(Family.IP) == node.routes[:1]
    assert node_from_json(node_to_json(node), name="n") == node


def test_a_node_has_the_default_rules_unless_they_are_denied() -> None:
    usual = node_from_json(NODE, name="n")
    assert not usual.has_own_rules(Family.IP)
    moved = node_from_json(
        '{"interfaces": {"a": []}, "default_rules": false, "rules": ['
        '{"priority": 100, "table": "local"}, {"priority": 32766, "table": "main"}]}',
        name="n",
    )
    assert [str(r) for r in moved.rules] == ["100: from all lookup local", "32766: from all lookup main"]
    assert moved.has_own_rules(Family.IP)
    assert node_from_json(node_to_json(moved), name="n") == moved


def test_a_rule_for_every_address_or_mark_selects_nothing() -> None:
    text = '{"interfaces": {"a": []}, "rules": [{"priority": 7, "from": "::/0", "fwmark": 0, "table": 9}]}'
    (rule,) = [r for r in node_from_json(text, name="n").rules if r.priority == 7]
    assert str(rule) == "7: from all lookup 9"
    assert rule.family is Family.IP6


_WRONG = [
    ('{"priority": 1}', "neither a table nor another action"),
    ('{"table": 7}', "has no priority"),
    ('{"priority": -1, "table": 7}', "rules[0].priority: -1 is not in 0-4294967295"),
    ('{"priority": 1, "table": 0}', "rules[0].table: 0 is not in 1-4294967295"),
    ('{"priority": 1, "table": "vpn"}', "rules[0].table: expected a number"),
    ('{"priority": 1, "table": 7, "fwmark": "1/2/3"}', "rules[0].fwmark: expected a mark"),
    ('{"priority": 1, "table": 7, "fwmark": true}', "rules[0].fwmark: expected a mark"),
    ('{"priority": 1, "table": 7, "iif": "b"}', "rules[0].iif: 'b' is not among the interfaces"),
    ('{"priority": 1, "table": 7, "from": "10.0.0.1/8"}', "rules[0].from: 10.0.0.1/8 has host bits set"),
    ('{"priority": 1, "table": 7, "from": "10.0.0.0/8", "to": "::1"}', "different families"),
    ('{"priority": 1, "table": 7, "family": "inet"}', "rules[0].family: 'inet' is not among ip, ip6"),
    ('{"priority": 1, "action": "dance"}', "rules[0].action: 'dance' is not among"),
    ('{"priority": 1, "action": "prohibit", "table": 7}', "rules[0].table: the action prohibit has no table"),
    ('{"priority": 1, "table": 7, "suppress_prefixlength": 33}', "33 is not in 0-32"),
    ('{"priority": 1, "table": 7, "uidrange": "0-1"}', "rules[0].uidrange: unknown key 'uidrange'"),
]


@pytest.mark.parametrize(("rule", "said"), _WRONG, ids=range(len(_WRONG)))
def test_what_is_wrong_with_a_rule_is_said(rule: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        node_from_json('{"interfaces": {"a": []},\n "rules": [' + rule + "]}", name="node.json")
    assert said in str(caught.value)
    assert str(caught.value).startswith("node.json:2:")


@pytest.mark.parametrize(
    ("route", "said"),
    [
        ('{"dst": "10.0.0.0/8", "type": "nat"}', "type: 'nat' is not among"),
        ('{"dst": "10.0.0.0/8", "type": "blackhole", "dev": "a"}', "a route of type blackhole has neither"),
        ('{"dst": "10.0.0.0/8", "type": "local", "dev": "a"}', "dev: a local route leads to lo"),
        (
            '{"dst": "10.0.0.0/8", "dev": "a", "table": "local"}',
            "leave out routes of the local table; they follow from the addresses",
        ),
        ('{"dst": "10.0.0.0/8", "dev": "a", "family": "ip6"}', "dst is not of the family ip6"),
    ],
    ids=range(5),
)
def test_what_is_wrong_with_a_route_is_said(route: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        node_from_json('{"interfaces": {"a": []},\n "routes": [' + route + "]}", name="node.json")
    assert said in str(caught.value)
    assert str(caught.value).startswith("node.json:2:")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[" * 100_000, "node.json:1:101: "),
        ('{"interfaces":\n {"a": [' + "1" * 5000 + "]}}", "node.json:2:9: a number of 5000"),
        ('{"interfaces": {"a": [true, null, {}]}}', "node.json:1:23: interfaces.a[0]"),
        ('{"interfaces": {"a b": []}}', "node.json:1:17: interfaces.a b"),
        ('{"interfaces": {"a": []}, "sysctls": {"net.ipv4.ip_forward": [1]}}', "node.json:1:39: sysctls.net"),
        ('{"interfaces": {"a": []}, "routes": [{"dst": 5, "dev": {}}]}', "node.json:1:39: routes[0].dst"),
        (
            '{"interfaces": {"a": []}, "interfaces": {"b": []}}',
            "node.json:1:27: key 'interfaces' is given twice",
        ),
        ('{"interfaces": {"\\udcff": []}}', "node.json:1:17: a string that holds half"),
    ],
    ids=range(8),
)
def test_a_fault_has_its_line_and_column(text: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        node_from_json(text, name="node.json")
    assert str(caught.value).startswith(place)
