"""``-m rpfilter`` in the reader, the simulator's routing and both translations."""

from __future__ import annotations

import pytest

from backends.model.node import node_from_json
from backends.simulator.routing.ip4 import Router
from backends.simulator.routing.ip6 import Router6
from tests.unit.translate.helpers.rules import nft, program
from translate.bpf import RuntimePart, emit
from translate.errors import ParseError
from translate.ir import AddressType, Family, parse_address
from translate.nft import emit as to_nft
from translate.passes import lower
from translate.read import read_ruleset

NODE = """{
  "interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.1.0.1/24"]},
  "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]
}"""


_TYPE = "type . ip saddr != { broadcast . 1.0.0.0-255.255.255.254 }"
_NO_BROADCAST = f"fib saddr . iif {_TYPE}"


@pytest.mark.parametrize(
    ("options", "text"),
    [("", "fib saddr . iif oif exists"), ("--validmark", "fib saddr . mark . iif oif exists")],
)
@pytest.mark.parametrize("level", [0, 1])
def test_nftables(options: str, text: str, level: int) -> None:
    chains = nft("raw", f"-A PREROUTING -m rpfilter {options} -j DROP", level=level)
    assert chains["raw_PREROUTING"] == [f"{text} {_NO_BROADCAST} drop"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--invert", "fib saddr . iif oif exists"),
        ("--validmark --invert", "fib saddr . mark . iif oif exists"),
    ],
)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_way_back_takes_two_rules(options: str, text: str, level: int) -> None:
    rules = [
        f"-A PREROUTING -s {source} -m rpfilter {options} -j DROP" for source in ("10.0.0.1", "10.0.0.2")
    ]
    chains = nft("raw", *rules, level=level)
    assert chains["raw_PREROUTING"] == [
        "ip saddr 10.0.0.1 jump raw_PREROUTING_2",
        "ip saddr 10.0.0.2 jump raw_PREROUTING_3",
    ]
    assert chains["raw_PREROUTING_2"] == [f"{text} {_NO_BROADCAST} return", "drop"]


@pytest.mark.parametrize(
    ("options", "text"),
    [("--loose", "fib saddr oif exists"), ("--loose --validmark", "fib saddr . mark oif exists")],
)
@pytest.mark.parametrize("level", [0, 2])
def test_any_device_leads_back(options: str, text: str, level: int) -> None:
    chains = nft("raw", f"-A PREROUTING -m rpfilter {options} -j DROP", level=level)
    assert chains["raw_PREROUTING"] == [f"{text} fib saddr {_TYPE} drop"]


@pytest.mark.parametrize(
    ("options", "local"), [("--accept-local", "fib saddr . iif"), ("--accept-local --loose", "fib saddr")]
)
def test_local_sources_are_accepted(options: str, local: str) -> None:
    chains = nft("raw", f"-A PREROUTING -p udp -m rpfilter {options} -j DROP", level=0)
    assert chains["raw_PREROUTING_2"][1] == f"{local} type local drop"
    chains = nft("raw", f"-A PREROUTING -p udp -m rpfilter {options} --invert -j DROP", level=0)
    assert f"{local} type != local" in chains["raw_PREROUTING"][0]


def test_tc_ebpf() -> None:
    text = emit(program("raw", "-A PREROUTING -m rpfilter --validmark --invert -j DROP")).chains
    assert "!(reverse_path(p) == 0x1)" in text


@pytest.mark.parametrize(("options", "test"), [("", "reverse_path(p)"), ("--loose", "reverse_route(p)")])
def test_tc_ebpf_over_ipv6(options: str, test: str) -> None:
    rule = f"-A PREROUTING -m rpfilter {options} --accept-local -j DROP"
    text = f"*raw\n:PREROUTING ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    output = emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=2))
    assert f"({test} == 0x1)" in output.chains
    assert output.parts == {RuntimePart.WAYS_BACK}
    assert "ways_back" in output.declared


def test_over_ipv6_nobody_passes() -> None:
    text = b"""*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m rpfilter -j DROP
-A PREROUTING -m rpfilter --invert -j DROP
COMMIT
"""
    legal = to_nft(lower(read_ruleset(text, name="rules", family=Family.IP6), level=0)).text
    assert "ip6 saddr :: drop" in legal
    assert "ip6 saddr != :: jump" in legal
    assert "fib saddr . iif oif exists drop" in legal


@pytest.mark.parametrize(
    ("src", "dev", "back"),
    [
        ("2001:db8::9", "eth0", True),
        ("2001:db8::9", "pod0", False),
        ("2001:db8::2", "eth0", False),  # the node's own
        ("2001:db8::", "eth0", False),  # the routers of the network
        ("2606::1", "eth0", True),
        ("2606::1", "pod0", False),
        ("fd00:1::9", "pod0", True),
        ("fd00:1::9", "pod1", True),
        ("fd00:1::9", "eth0", False),
        ("fe80::9", "eth0", True),
        ("fe80::9", "pod0", False),
        ("fe80::2", "pod1", True),  # another device's own, of another link
        ("::1", "lo", True),
    ],
)
def test_the_way_back_over_ipv6(src: str, dev: str, *, back: bool) -> None:
    node = """{
      "interfaces": {"eth0": ["2001:db8::2/64", "fe80::2/64"], "pod0": ["fd00:1::1/64"],
                     "pod1": ["fd00:1::2/64", "fe80::3/64"]},
      "routes": [{"dst": "default", "via": "2001:db8::1", "dev": "eth0"}],
      "sysctls": {"net.ipv6.conf.all.forwarding": "1"}
    }"""
    router = Router6(node_from_json(node, name="node"))
    assert router.leads_back(parse_address(Family.IP6, src), 0, dev) is back


@pytest.mark.parametrize(
    ("src", "strict", "loose"),
    [
        ("2001:db8::9", False, True),
        ("2001:db8::2", False, False),  # the node's own
        ("2001:db8::", False, False),  # the routers of the network
        ("2606::1", False, False),
        ("fd00:1::9", True, True),
        ("fe80::9", False, False),  # the device has no route to the link
        ("fe80::2", False, False),
    ],
)
def test_any_way_back_over_ipv6(src: str, *, strict: bool, loose: bool) -> None:
    node = """{
      "interfaces": {"eth0": ["2001:db8::2/64", "fe80::2/64"], "pod0": ["fd00:1::1/64"]},
      "sysctls": {"net.ipv6.conf.all.forwarding": "1"}
    }"""
    router = Router6(node_from_json(node, name="node"))
    address = parse_address(Family.IP6, src)
    assert router.leads_back(address, 0, "pod0") is strict
    assert router.leads_back(address, 0, "pod0", loose=True) is loose


def test_a_refusing_route_does_not_come_before_earlier_ones() -> None:
    node = """{
      "interfaces": {"pod0": ["fd00:1::1/64"]},
      "routes": [{"dst": "fd00:1::/64", "type": "unreachable"}]
    }"""
    router = Router6(node_from_json(node, name="node"))
    address = parse_address(Family.IP6, "fd00:1::9")
    assert router.leads_back(address, 0, "pod0", loose=True)
    assert router.address_type(address) is AddressType.UNICAST


@pytest.mark.parametrize(
    ("src", "dst", "dev", "back"),
    [
        ("10.1.0.5", "192.0.2.9", "pod0", True),
        ("10.1.0.5", "192.0.2.9", "eth0", False),
        ("198.51.100.1", "10.1.0.5", "eth0", True),
        ("198.51.100.1", "10.1.0.5", "pod0", False),
        ("192.0.2.2", "10.1.0.5", "eth0", False),  # the node's own
        ("127.0.0.1", "127.0.0.1", "lo", True),
        ("0.0.0.0", "255.255.255.255", "pod0", True),  # a client of DHCP
        ("0.0.0.0", "10.1.0.1", "pod0", False),
    ],
)
def test_the_way_back(src: str, dst: str, dev: str, back: bool) -> None:
    router = Router(node_from_json(NODE, name="node"))
    addresses = [parse_address(Family.IP, text) for text in (src, dst)]
    assert router.leads_back(addresses[0], addresses[1], dev) is back


@pytest.mark.parametrize(
    ("table", "rule", "message"),
    [
        ("filter", "-A FORWARD -m rpfilter", "not valid in table filter"),
        ("mangle", "-A FORWARD -m rpfilter", "rpfilter is not valid in FORWARD"),
    ],
)
def test_wrong(table: str, rule: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program(table, rule)
