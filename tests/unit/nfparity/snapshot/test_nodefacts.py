"""Facts about the node in a snapshot, and those that the node cannot represent."""

from __future__ import annotations

import re

import pytest

from backends.model.node import Node
from nfparity.snapshot import load_snapshot
from translate.errors import ParseError
from translate.ir import Family

from .conftest import ETH0, LO, ROUTES, Make


def device(name: str, *addresses: tuple[str, int], **more: object) -> dict[str, object]:
    entries = [
        {"family": "inet6" if ":" in a else "inet", "local": a, "prefixlen": length}
        for a, length in addresses
    ]
    return {"ifname": name, "flags": ["UP"], "link_type": "ether", "addr_info": entries, **more}


def addresses(node: Node) -> dict[str, list[str]]:
    return {i.name: [str(a) for a in i.addresses] for i in node.interfaces}


def routes(node: Node) -> list[str]:
    return [str(r) for r in node.routes]


USUAL = {"sysctl.json": {}, "route6.json": [{"dst": "2001:db8::/64", "dev": "eth0", "protocol": "kernel"}]}


def test_an_ordinary_node_needs_no_assumption(make: Make) -> None:
    rules = [
        {"priority": 0, "src": "all", "table": "local"},
        {"priority": 32766, "src": "all", "table": "main"},
    ]
    node = load_snapshot(make(**USUAL, **{"rule.json": rules, "rule6.json": rules})).node
    assert addresses(node) == {"eth0": ["192.0.2.2/24", "2001:db8::2/64"]}
    assert routes(node) == ["0.0.0.0/0 via 192.0.2.1 dev eth0"]
    assert node.assumed == ()
    assert node.sysctls == {}


def test_groups_of_devices(make: Make) -> None:
    devices = [device("eth0", group="7"), device("eth1", group="default"), device("eth2", group="uplinks")]
    node = load_snapshot(make(**{"addr.json": devices, "route.json": []})).node
    assert [node.group_of(f"eth{n}") for n in range(3)] == [7, 0, 0]
    assert 'interface eth2 in group 0 (its group is "uplinks", whose number is not known)' in node.assumed


def test_what_is_missing_is_said(make: Make) -> None:
    node = load_snapshot(make(**{"route.json": None})).node
    assert node.assumed == (
        "no IPv4 routes but those of the addresses (route.json is missing)",
        "no IPv6 routes but those of the addresses (route6.json is missing)",
        "the usual sysctls (sysctl.json is missing)",
    )


DEVICES = [
    (
        device("veth1", master="cni0"),
        {},
        "no interface veth1: it is a port of cni0, where its packets enter",
    ),
    (
        device("eth7", ("10.7.0.1", 24), master="vrf7"),
        {"eth7": ["10.7.0.1/24"]},
        "interface eth7 without its master vrf7 (vrf)",
    ),
    (
        device("tun0", ("10.8.0.1", 24), link_type="none"),
        {"tun0": ["10.8.0.1/24"]},
        "interface tun0 as an Ethernet device (it is: none)",
    ),
    (device("dummy0", flags=["NOARP"]), {}, None),
    (
        device("kube-ipvs0", ("10.96.0.1", 32), ("10.9.0.1", 24), ("fd00::1", 64), flags=["NOARP"]),
        {"kube-ipvs0": ["10.96.0.1/32", "10.9.0.1/32"]},
        "interface kube-ipvs0 up, but without connected networks (it is down)",
    ),
]


@pytest.mark.parametrize(("one", "there", "note"), DEVICES, ids=[str(d[0]["ifname"]) for d in DEVICES])
def test_devices_of_other_kinds(
    make: Make, one: dict[str, object], there: dict[str, list[str]], note: str | None
) -> None:
    masters = [
        device("cni0", ("10.5.0.1", 24), linkinfo={"info_kind": "bridge"}),
        device("vrf7", linkinfo={"info_kind": "vrf"}),
    ]
    node = load_snapshot(make(**{"addr.json": [LO, ETH0, *masters, one], "route.json": None})).node
    found = addresses(node)
    assert {k: v for k, v in found.items() if k not in ("eth0", "cni0", "vrf7")} == there
    said = [n for n in node.assumed if str(one["ifname"]) in n]
    assert said == ([] if note is None else [note])


def test_the_other_end_of_a_link_is_a_route(make: Make) -> None:
    peer = device("ppp0")
    peer["addr_info"] = [{"family": "inet", "local": "10.0.0.1", "address": "10.0.0.2", "prefixlen": 32}]
    there = [{"dst": "10.0.0.2", "dev": "ppp0", "protocol": "kernel", "scope": "link"}]
    node = load_snapshot(make(**{"addr.json": [peer], "route.json": there, "sysctl.json": {}})).node
    assert addresses(node) == {"ppp0": ["10.0.0.1/32"]}
    assert routes(node) == ["10.0.0.2/32 dev ppp0"]
    assert node.assumed == ()


def test_an_address_on_lo_is_the_nodes_own(make: Make) -> None:
    lo = device("lo", ("127.0.0.1", 8), ("198.51.100.7", 32), ("::1", 128), ("fd00::7", 128))
    node = load_snapshot(make(**USUAL, **{"addr.json": [lo, ETH0]})).node
    assert addresses(node) == {"eth0": ["192.0.2.2/24", "2001:db8::2/64", "198.51.100.7/32", "fd00::7/128"]}
    assert node.assumed == (
        "address 198.51.100.7/32 on eth0 (it is on lo)",
        "address fd00::7/128 on eth0 (it is on lo)",
    )


NOT_THERE = [
    (
        {"type": "nat", "dst": "10.1.0.0/16"},
        "no route nat 10.1.0.0/16: a route of this type is not supported",
    ),
    ({"dst": "10.1.0.0/16", "dev": "eth0", "flags": ["dead", "linkdown"]}, "its device is dead"),
    ({"type": "local", "dst": "10.1.0.0/16", "dev": "lo", "table": "local"}, "no route local 10.1.0.0/16"),
    (
        {"dst": "default", "gateway": "192.0.2.9", "dev": "eth0", "metric": 100},
        "no route 0.0.0.0/0 via 192.0.2.9 dev eth0: 0.0.0.0/0 via 192.0.2.1 dev eth0 has priority",
    ),
]


@pytest.mark.parametrize(("route", "note"), NOT_THERE, ids=[n for _, n in NOT_THERE])
def test_routes_that_a_node_cannot_have(make: Make, route: dict[str, object], note: str) -> None:
    node = load_snapshot(make(**USUAL, **{"route.json": [*ROUTES, route]})).node
    assert routes(node) == ["0.0.0.0/0 via 192.0.2.1 dev eth0"]
    (said,) = node.assumed
    assert note in said


def test_of_several_next_hops_the_first(make: Make) -> None:
    hops = [{"gateway": f"192.0.2.{n}", "dev": "eth0", "weight": 1} for n in (1, 9)]
    node = load_snapshot(
        make(**USUAL, **{"route.json": [{"dst": "default", "nexthops": hops}, ROUTES[1]]})
    ).node
    assert routes(node) == ["0.0.0.0/0 via 192.0.2.1 dev eth0"]
    assert node.assumed == ("route 0.0.0.0/0 with only the first of its 2 next hops",)


def test_a_better_metric_wins_whatever_its_place(make: Make) -> None:
    given = [{**ROUTES[0], "metric": 200}, {**ROUTES[0], "gateway": "192.0.2.9", "metric": 100}, ROUTES[1]]
    node = load_snapshot(make(**USUAL, **{"route.json": given})).node
    assert routes(node) == ["0.0.0.0/0 via 192.0.2.9 dev eth0"]


def test_an_address_without_a_route_to_its_network_stands_alone(make: Make) -> None:
    node = load_snapshot(make(**USUAL, **{"route.json": ROUTES[:1]})).node
    assert addresses(node) == {"eth0": ["192.0.2.2/32", "2001:db8::2/64"]}
    assert node.assumed == ("address 192.0.2.2/32 on eth0, without its network (no route to it)",)


def test_what_the_kernel_adds_by_itself_is_neither_route_nor_note(make: Make) -> None:
    six = [
        {"dst": "2001:db8::/64", "dev": "eth0", "protocol": "kernel", "metric": 256},
        {"dst": "fe80::/64", "dev": "eth0", "protocol": "kernel", "metric": 256},
        {"type": "unreachable", "dst": "default", "dev": "lo", "metric": 4294967295},
        {"type": "local", "dst": "fe80::2", "dev": "eth0", "table": "local", "protocol": "kernel"},
        {"type": "anycast", "dst": "2001:db8::", "dev": "eth0", "table": "local", "protocol": "kernel"},
        {"type": "multicast", "dst": "ff00::/8", "dev": "eth0", "table": "local", "protocol": "kernel"},
        {"dst": "default", "gateway": "fe80::1", "dev": "eth0", "protocol": "ra", "metric": 1024},
    ]
    node = load_snapshot(make(**{"sysctl.json": {}, "route6.json": six})).node
    assert routes(node)[1:] == ["::/0 via fe80::1 dev eth0"]
    assert node.assumed == ()


def test_routes_of_all_tables_and_types(make: Make) -> None:
    listed = [
        {"type": "blackhole", "dst": "10.1.0.0/16"},
        {"dst": "10.2.0.0/16", "dev": "eth0", "table": "100"},
        {"dst": "192.0.2.0/24", "dev": "eth0", "scope": "link", "table": "100"},
        {"type": "throw", "dst": "10.3.0.0/16", "table": "52"},
        {"type": "local", "dst": "default", "dev": "lo", "table": "7", "scope": "host"},
        {"dst": "default", "gateway": "192.0.2.7", "dev": "eth0", "table": "vpn"},
    ]
    rules = [{"priority": 0, "src": "all", "table": "local"}, {"priority": 5, "src": "all", "table": "vpn"}]
    node = load_snapshot(make(**USUAL, **{"route.json": [*ROUTES, *listed], "rule.json": rules})).node
    assert routes(node) == [
        "0.0.0.0/0 via 192.0.2.1 dev eth0",
        "blackhole 10.1.0.0/16",
        "10.2.0.0/16 dev eth0 table 100",
        "192.0.2.0/24 dev eth0 table 100",
        "throw 10.3.0.0/16 table 52",
        "local 0.0.0.0/0 dev lo table 7",
        "0.0.0.0/0 via 192.0.2.7 dev eth0 table 2147483651",
    ]
    assert str(node.rules_of(Family.IP)[1]) == "5: from all lookup 2147483651"
    assert node.assumed == ("routing table vpn as table 2147483651",)


def test_routing_rules_are_those_of_the_node(make: Make) -> None:
    rules = [
        {"priority": 0, "src": "all", "table": "local"},
        {"priority": 100, "src": "all", "fwmark": "0x80", "table": "100"},
        {"priority": 200, "not": None, "src": "10.0.0.0", "srclen": 8, "table": "main"},
        {"priority": 201, "src": "all", "table": "main", "suppress_prefixlen": 0},
        {"priority": 202, "src": "all", "fwmark": "0x80000", "fwmask": "0xff0000", "action": "unreachable"},
        {"priority": 203, "src": "all", "dst": "10.0.0.1", "iif": "eth0", "iif_detached": None, "table": "7"},
        {"priority": 204, "src": "all", "nop": None},
        {"priority": 32766, "src": "all", "table": "main"},
    ]
    node = load_snapshot(make(**USUAL, **{"rule.json": rules})).node
    assert [str(rule) for rule in node.rules_of(Family.IP)] == [
        "0: from all lookup local",
        "100: from all fwmark 0x80 lookup 100",
        "200: not from 10.0.0.0/8 lookup main",
        "201: from all lookup main suppress_prefixlength 0",
        "202: from all fwmark 0x80000/0xff0000 unreachable",
        "203: from all to 10.0.0.1/32 iif eth0 lookup 7",
        "32766: from all lookup main",
    ]
    assert [str(rule) for rule in node.rules_of(Family.IP6)] == [
        "0: from all lookup local",
        "32766: from all lookup main",
    ]
    assert node.assumed == ()


@pytest.mark.parametrize(
    "more",
    [
        {"uid_start": 0, "uid_end": 10, "table": "7"},
        {"ipproto": "tcp", "dport": 80, "table": "7"},
        {"tos": "0x10", "table": "7"},
        {"goto": 32766},
        {"l3mdev": None},
    ],
    ids=lambda more: next(iter(more)),
)
def test_routing_rules_that_a_node_cannot_have_are_told(make: Make, more: dict[str, object]) -> None:
    usual = {"priority": 0, "src": "all", "table": "local"}
    rules = [usual, {"priority": 10, "src": "all", **more}]
    node = load_snapshot(make(**USUAL, **{"rule.json": rules})).node
    assert [str(rule) for rule in node.rules_of(Family.IP)] == ["0: from all lookup local"]
    (said,) = node.assumed
    assert said.startswith("no routing rule priority 10 src all ")
    assert said.endswith(": the routes of its packets are not known")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"table": []}, "table: expected the name or number"),
        ({"table": "7", "fwmark": "x"}, "fwmark: expected a number of 32 bits"),
        ({"table": "7", "src": "10.0.0.300"}, "src: not an IPv4 address"),
        ({"table": "7", "src": "10.0.0.0", "srclen": 33}, "srclen: not a prefix length"),
        ({"action": "dance"}, "action: expected one of"),
    ],
    ids=range(5),
)
def test_a_fault_in_a_routing_rule_has_its_place(make: Make, wrong: dict[str, object], said: str) -> None:
    with pytest.raises(ParseError, match=re.escape(said)):
        load_snapshot(make(**USUAL, **{"rule.json": [{"priority": 10, "src": "all", **wrong}]}))


def test_sysctls_of_marks(make: Make) -> None:
    values = {
        "net.ipv4.conf.eth0.src_valid_mark": "1",
        "net.ipv4.fwmark_reflect": "1",
        "net.ipv6.fwmark_reflect": "0",
    }
    node = load_snapshot(make(**{**USUAL, "sysctl.json": values})).node
    assert dict(node.sysctls) == {"net.ipv4.conf.eth0.src_valid_mark": "1", "net.ipv4.fwmark_reflect": "1"}


def test_sysctls_that_differ_from_a_nodes_defaults(make: Make) -> None:
    sysctls = {
        "net.ipv4.ip_forward": "1",
        "net.ipv4.conf.all.route_localnet": "1",
        "net.ipv4.conf.default.rp_filter": "2",
        "net.ipv4.conf.eth0.rp_filter": "2",
        "net.ipv4.conf.eth0.forwarding": "0",
        "net.ipv4.conf.gone.rp_filter": "1",
        "net.ipv4.conf.v/7.rp_filter": "1",
        "net.netfilter.nf_conntrack_tcp_timeout_close_wait": "3600",
        "net.netfilter.nf_conntrack_udp_timeout": "30\n",
        "net.netfilter.nf_conntrack_max": "262144",
    }
    there = [LO, ETH0, device("v.7", ("10.7.0.1", 32))]
    node = load_snapshot(make(**{"sysctl.json": sysctls, "addr.json": there})).node
    assert node.sysctls == {
        "net.ipv4.conf.all.route_localnet": "1",
        "net.ipv4.conf.default.rp_filter": "2",
        "net.ipv4.conf.eth0.forwarding": "0",
        "net.ipv4.conf.v.7.rp_filter": "1",
        "net.netfilter.nf_conntrack_tcp_timeout_close_wait": "3600",
    }


WRONG = [
    ({"addr.json": "[\n {]"}, r"addr\.json:2:3: not JSON"),
    ({"addr.json": {}}, r"addr\.json:1:1: expected a list"),
    ({"addr.json": [LO]}, r"addr\.json:1:1: no interface except lo"),
    (
        {"addr.json": [device("a", ("10.0.0.1", 40))]},
        r"addr\.json:1:111: \[0\]\.addr_info\[0\]\.prefixlen: not a prefix length",
    ),
    (
        {"addr.json": [device("a", ("10.0.0.x", 4))]},
        r"addr\.json:1:90: \[0\]\.addr_info\[0\]\.local: not an IPv4 address",
    ),
    ({"addr.json": [device("a/b")]}, r"addr\.json:1:3: \[0\]\.ifname: expected the name of an interface"),
    ({"addr.json": [ETH0, ETH0]}, "listed twice"),
    ({"route.json": [{"dst": "10.0.0.0/33", "dev": "eth0"}]}, r"route\.json:1:3: \[0\]\.dst: /33"),
    (
        {"route.json": [{"dst": "default", "dev": "eth1"}]},
        r"route\.json:1:21: \[0\]\.dev: 'eth1' is not among",
    ),
    ({"route.json": [{"dst": "default", "gateway": "fe80::1", "dev": "eth0"}]}, "gateway: not an IPv4"),
    ({"sysctl.json": {"net.ipv4.conf.all.rp_filter": "on"}}, "'on' is no number"),
    ({"sysctl.json": {"net.ipv4.ip_forward": True}}, "expected a value as text"),
    ({"meta.json": "[]"}, r"meta\.json:1:1: expected an object"),
]


@pytest.mark.parametrize(("files", "message"), WRONG, ids=[m for _, m in WRONG])
def test_what_is_wrong_is_said_with_its_file(make: Make, files: dict[str, object], message: str) -> None:
    path = make(**files)
    with pytest.raises(ParseError, match=message) as caught:
        load_snapshot(path)
    assert re.match(re.escape(path), str(caught.value))
