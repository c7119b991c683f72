"""Addresses with the same results of every lookup of routes."""

from __future__ import annotations

import pytest

from backends.model.node import node_from_json
from nfparity.assess.node.lookups import Lookups
from translate.ir import Family, parse_address

NODE = """{
  "interfaces": {"eth0": ["192.168.0.2/24", "192.168.0.3/24"], "cni0": ["10.244.0.1/24"]},
  "routes": [
    {"dst": "default", "via": "192.168.0.1", "dev": "eth0"},
    {"dst": "10.244.1.0/24", "via": "192.168.0.6", "dev": "eth0"},
    {"dst": "10.244.2.0/24", "via": "192.168.0.7", "dev": "eth0"},
    {"dst": "10.244.3.0/24", "dev": "cni0"},
    {"dst": "10.9.0.0/16", "type": "unreachable"}
  ]
}"""


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("10.244.1.5", "10.244.2.5", True),
        ("10.244.1.5", "198.51.100.7", True),
        ("10.244.0.5", "10.244.0.6", True),
        ("192.168.0.2", "192.168.0.3", True),
        ("10.244.1.5", "10.244.3.5", False),
        ("10.244.0.5", "10.244.0.255", False),
        ("10.244.0.5", "10.244.0.1", False),
        ("10.9.0.1", "10.244.1.5", False),
        ("127.0.0.1", "198.51.100.7", False),
        ("224.0.0.1", "198.51.100.7", False),
    ],
)
def test_addresses_with_one_route_and_type_are_alike(first: str, second: str, same: bool) -> None:
    lookups = Lookups(node_from_json(NODE, name="node"), Family.IP)
    a, b = (lookups.of(parse_address(Family.IP, text)) for text in (first, second))
    assert (a == b) is same


def test_rules_separate_the_addresses_that_they_test() -> None:
    rules = (
        ', "rules": [{"priority": 9, "to": "10.244.1.0/24", "table": 100},'
        ' {"priority": 32766, "table": "main"}]}'
    )
    lookups = Lookups(node_from_json(NODE.removesuffix("}") + rules, name="node"), Family.IP)
    a, b = (lookups.of(parse_address(Family.IP, text)) for text in ("10.244.1.5", "10.244.2.5"))
    assert a != b
