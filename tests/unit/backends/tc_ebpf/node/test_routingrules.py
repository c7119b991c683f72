"""The rulesets that the tc program refuses on a node with routing rules."""

from __future__ import annotations

import json

import pytest

from backends.model.node import Node, node_from_json
from backends.tc_ebpf.node.routingrules import FEATURE, check_routing
from translate.errors import Refusal, UnsupportedError
from translate.read import read_ruleset

RULE = {"priority": 100, "fwmark": "0x1/0x1", "table": 100}


def node(*rules: dict[str, object], **more: object) -> Node:
    data = {
        "interfaces": {"eth0": ["192.0.2.10/24"], "eth1": ["198.51.100.10/24"]},
        "routes": [{"dst": "default", "dev": "eth1", "table": 100}],
        "rules": list(rules),
        **more,
    }
    return node_from_json(json.dumps(data), name="node")


def refused(at: Node, *rules: str) -> list[str]:
    """Return the refusals of a dump of rules, each given with its table."""
    text = "".join(f"*{r.split()[0]}\n{' '.join(r.split()[1:])}\nCOMMIT\n" for r in rules)
    refusals: tuple[Refusal, ...] = ()
    try:
        check_routing(at, read_ruleset(text.encode(), name="rules"))
    except UnsupportedError as e:
        refusals = e.refusals
    assert {refusal.feature for refusal in refusals} <= {FEATURE}
    return [f"{refusal.origin.place}: {refusal.reason}" for refusal in refusals]


HARMLESS = (
    "mangle -A PREROUTING -i eth0 -j MARK --set-xmark 0x1/0x1",
    "nat -A PREROUTING -p tcp --dport 80 -j DNAT --to-destination 192.0.2.7",
    "nat -A OUTPUT -p tcp --dport 80 -j REDIRECT --to-ports 8080",
    "nat -A POSTROUTING -o eth1 -j MASQUERADE",
    "filter -A OUTPUT -j MARK --set-xmark 0x1/0x1",
)


def test_what_the_kernel_routes_is_not_refused() -> None:
    assert refused(node(RULE), *HARMLESS) == []


@pytest.mark.parametrize(
    ("rule", "what"),
    [
        ("mangle -A OUTPUT -j MARK --set-xmark 0x1/0x1", "OUTPUT changes a packet that is then routed again"),
        ("mangle -A OUTPUT -j CONNMARK --restore-mark", "OUTPUT changes a packet that is then routed again"),
        ("nat -A OUTPUT -j DNAT --to-destination 192.0.2.7", "OUTPUT changes the destination of a packet"),
        ("filter -A INPUT -j REJECT", "REJECT makes an answer"),
        (
            "mangle -A PREROUTING -m rpfilter -j ACCEPT",
            "a test looks up the route back to the sender of a packet",
        ),
    ],
)
def test_what_the_program_routes_is_refused(rule: str, what: str) -> None:
    (said,) = refused(node(RULE), rule)
    assert said.startswith(f"rules:2: {what}")
    assert refused(node(), rule) == []


def test_a_rule_below_a_jump_is_found() -> None:
    text = "*mangle\n:MARKS - [0:0]\n-A OUTPUT -j MARKS\n-A MARKS -j MARK --set-xmark 0x1/0x1\nCOMMIT\n"
    with pytest.raises(UnsupportedError, match="rules:4: "):
        check_routing(node(RULE), read_ruleset(text.encode(), name="rules"))


def test_nodes_that_are_refused_whatever_the_rules() -> None:
    local = {"routes": [{"dst": "default", "type": "local", "dev": "lo", "table": 7}]}
    assert "delivers packets" in refused(node(**local))[0]
    strict = {"sysctls": {"net.ipv4.conf.eth1.rp_filter": "1"}}
    assert "rp_filter is 1" in refused(node(RULE, **strict))[0]
    assert refused(node(**strict)) == []
    late = node({"priority": 100, "table": "local"}, {"priority": 1, "table": "main"}, default_rules=False)
    assert "not the one for the local table" in refused(late)[0]


def test_masquerade_with_several_networks_on_a_device() -> None:
    two = {"interfaces": {"eth0": ["192.0.2.10/24", "198.51.100.10/24"], "eth1": []}}
    (said,) = refused(node(RULE, **two), "nat -A POSTROUTING -j MASQUERADE")
    assert "MASQUERADE selects" in said
