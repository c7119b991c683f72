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


def test_a_sysctl_that_is_not_given_has_its_default() -> None:
    node = node_from_json(NODE, name="n")
    assert node.sysctl("net.ipv4.ip_forward") == "0"
    assert node.sysctl("net.netfilter.nf_conntrack_tcp_loose") == "1"
    with pytest.raises(KeyError):
        node.sysctl("net.ipv4.tcp_ecn")


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
