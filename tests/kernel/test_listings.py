"""The listings of a network namespace, beside those of ip(8)."""

from __future__ import annotations

import ipaddress
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lab.pycache import compiled_modules

ROOT: Final = Path(__file__).parents[2]

_NODE: Final = """
ip link set lo up
ip link add d0 type veth peer name d1
ip link add br0 type bridge
ip link set d1 master br0
ip link set d0 group 7
for device in d0 d1 br0; do ip link set $device up; done
ip address add 192.0.2.2/24 dev d0
ip address add 192.0.2.3/24 dev d0
ip address add 10.0.0.1 peer 10.0.0.2/32 dev br0
ip address add 198.51.100.1/25 scope link dev br0
ip address add 2001:db8::1/64 dev d0 nodad
ip address add fd00::5 peer fd00::6/128 dev br0 nodad
ip address add 2001:db8:2::1/64 dev br0 nodad preferred_lft 0 valid_lft 1000
ip route add default via 192.0.2.1 dev d0
ip route add default via 192.0.2.9 dev d0 metric 50
ip route add 10.1.0.0/16 dev br0 src 198.51.100.1
ip route add blackhole 10.66.0.0/16
ip route add 10.71.0.0/16 dev d0 table 4000
ip route add 10.74.0.0/16 nexthop via 192.0.2.5 dev d0 nexthop via 10.0.0.2 dev br0
ip route add 2001:db8:5::/48 via 2001:db8::9 dev d0 metric 5
ip route add local 2001:db8:8::/64 dev lo
"""
_LISTED: Final = """
import json
from dataclasses import asdict
from backends.tc_ebpf.node.listings import Listings
from translate.ir import Family
with Listings() as listings:
    print(json.dumps({
        "links": [asdict(link) | {"mac": link.mac.hex(":")} for link in listings.links()],
        **{f"addresses {f.value}": [asdict(a) for a in listings.addresses(f)] for f in Family},
        **{f"routes {f.value}": [asdict(r) for r in listings.routes(f)] for f in Family},
        **{f"new {f.value}": listings.routes_as_a_new_namespace(f) for f in Family},
        **{f"plain {f.value}": listings.has_plain_rules(f) for f in Family},
    }))
"""
_BY_IP: Final = """
ip -j -d link; ip -j -4 address; ip -j -6 address
ip -j -N -4 route show table all; ip -j -N -6 route show table all
"""
_UNICAST: Final = 1


def in_namespace(script: str) -> str:
    """Run a shell script in a new network namespace, with Python as ``$PYTHON``."""
    environment = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "PYTHONPATH": str(ROOT),
        "PYTHON": sys.executable,
        "LISTED": _LISTED,
        **compiled_modules(),
    }
    words = ["unshare", "--net", "sh", "-ec", script]
    return subprocess.run(words, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.fixture(scope="module")
def both() -> tuple[dict[str, Any], list[Any]]:
    """The listings, and what ip(8) lists: links, addresses of both families, routes of both families."""
    listed, *by_ip = in_namespace(f'{_NODE}\n$PYTHON -c "$LISTED"\n{_BY_IP}').splitlines()
    return json.loads(listed), [json.loads(line) for line in by_ip]


def number(text: str) -> int:
    return int(ipaddress.ip_address(text))


def test_links_are_those_of_ip(both: tuple[dict[str, Any], list[Any]]) -> None:
    listings, (links, *_) = both
    names = {link["ifindex"]: link["ifname"] for link in links}
    assert [
        (link["index"], link["name"], link["mac"], names.get(link["master"]), link["kind"], link["port_kind"])
        for link in listings["links"]
    ] == [
        (
            link["ifindex"],
            link["ifname"],
            link["address"],
            link.get("master"),
            link.get("linkinfo", {}).get("info_kind", ""),
            link.get("linkinfo", {}).get("info_slave_kind", ""),
        )
        for link in links
    ]
    assert {link["name"]: link["group"] for link in listings["links"]}["d0"] == 7
    assert {link["name"]: link["hardware"] for link in listings["links"]} == {
        "lo": 772,
        "d0": 1,
        "d1": 1,
        "br0": 1,
    }


@pytest.mark.parametrize("family", ["ip", "ip6"])
def test_addresses_are_those_of_ip(both: tuple[dict[str, Any], list[Any]], family: str) -> None:
    listings, by_ip = both
    listed = {
        (a["index"], a["value"], a["length"], a["secondary"], a["aging"], a["usable"])
        for a in listings[f"addresses {family}"]
    }
    assert len(listed) == len(listings[f"addresses {family}"])
    expected = {
        (
            link["ifindex"],
            number(a["local"]),
            a["prefixlen"],
            a.get("secondary", False),
            a.get("deprecated", False),
            not a.get("tentative", False),
        )
        for link in by_ip[1 if family == "ip" else 2]
        for a in link.get("addr_info", ())
    }
    assert {one[:-1] for one in listed} == {one[:-1] for one in expected}
    # A link-local address stays tentative for a second, and may leave that state between the two listings.
    assert {one for one in listed if one[1] >> 118 != 0x3FA} == {
        one for one in expected if one[1] >> 118 != 0x3FA
    }


@pytest.mark.parametrize("family", ["ip", "ip6"])
def test_routes_are_those_of_ip(both: tuple[dict[str, Any], list[Any]], family: str) -> None:
    listings, by_ip = both
    indices = {link["ifname"]: link["ifindex"] for link in by_ip[0]}
    expected = []
    for route in by_ip[3 if family == "ip" else 4]:
        bits = 32 if family == "ip" else 128
        default = "0.0.0.0" if family == "ip" else "::"
        address, _, length = route["dst"].replace("default", f"{default}/0").partition("/")
        expected.append(
            (
                int(route.get("table", 254)),
                int(route.get("type", _UNICAST)),
                number(address),
                int(length or bits),
                indices.get(route.get("dev")),
                number(route["gateway"]) if "gateway" in route else None,
                number(route["prefsrc"]) if "prefsrc" in route else None,
                route.get("metric", 0),
            )
        )
    fields = ("table", "type", "destination", "length", "oif", "gateway", "source", "metric")
    assert [tuple(route[field] for field in fields) for route in listings[f"routes {family}"]] == expected


@pytest.mark.parametrize(
    ("change", "plain"),
    [
        ("true", [True, True]),
        ("ip rule del table default", [True, True]),
        ("ip rule add fwmark 1 lookup main", [False, True]),
        ("ip -6 rule add priority 32766 lookup main suppress_prefixlength 0", [True, False]),
        ("ip rule add priority 32766 tos 0x10 lookup main", [False, True]),
        ("ip -6 rule add priority 32766 not from all lookup main", [True, False]),
        ("ip -6 rule add from 2001:db8::/32 prohibit", [True, False]),
    ],
)
def test_plain_rules_are_the_initial_ones(change: str, plain: list[bool]) -> None:
    listings = json.loads(in_namespace(f'{change}\n$PYTHON -c "$LISTED"'))
    assert [listings["plain ip"], listings["plain ip6"]] == plain


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ("true", [True, True]),
        (
            "ip address add 192.0.2.2/24 dev lo; ip route add local 192.0.2.128/25 dev lo table local",
            [True, True],
        ),
        ("ip rule del table default", [False, True]),
        ("ip rule add fwmark 1 lookup main", [False, True]),
        ("ip -6 rule add priority 9 lookup main", [True, False]),
        ("ip route add local 192.0.2.0/24 dev lo table 100", [False, True]),
        ("ip -6 route add local 2001:db8::/64 dev lo table 100", [True, False]),
    ],
)
def test_a_new_namespace_has_all_initial_rules_and_delivers_by_the_local_table(
    change: str, new: list[bool]
) -> None:
    listings = json.loads(in_namespace(f'ip link set lo up; {change}\n$PYTHON -c "$LISTED"'))
    assert [listings["new ip"], listings["new ip6"]] == new
