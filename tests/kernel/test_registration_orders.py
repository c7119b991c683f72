"""kube-proxy beside other components, in each order in which they can register their chains."""

from __future__ import annotations

import json

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.node import Node
from nfparity.assess.assessing import Assessment
from nfparity.assess.replay.orders import Binding, OrderDifference
from nfparity.assess.snapshots import AssessOptions, assess_snapshot
from nfparity.snapshot import Snapshot, Variant
from tests.kernel.helpers.assessed import REAL
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.besidekube import beside_kube
from translate.ir import Family, parse_address
from translate.read import read_ruleset

CLOSED = "K06/10.98.0.5:9/outside"
ERP = "K20/legacy/erp:erp/192.168.0.2:8000/10.244.2.50"
FRONTEND = "K20/web/frontend:http/192.168.0.2:30080/10.244.0.11"
REDIS = "K20/data/redis:redis/10.98.0.6:6379/10.244.0.41"
DIAMETER = "K20/telco/diameter:sctp/192.168.0.2:30868/10.244.0.61"

LOCAL = {"fib": {"result": "type", "flags": ["daddr"]}}
PORTMAP = {
    "nftables": [
        {"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"table": {"family": "inet", "name": "cni_hostport", "handle": 1}},
        {"chain": {"family": "inet", "table": "cni_hostport", "name": "hostports", "handle": 1}},
        {
            "chain": {
                "family": "inet",
                "table": "cni_hostport",
                "name": "prerouting",
                "handle": 2,
                "type": "nat",
                "hook": "prerouting",
                "prio": -100,
                "policy": "accept",
            }
        },
        {
            "rule": {
                "family": "inet",
                "table": "cni_hostport",
                "chain": "prerouting",
                "handle": 3,
                "expr": [
                    {
                        "match": {
                            "op": "==",
                            "left": {"fib": {"result": "type", "flags": ["daddr"]}},
                            "right": "local",
                        }
                    },
                    {"jump": {"target": "hostports"}},
                ],
            }
        },
        {
            "rule": {
                "family": "inet",
                "table": "cni_hostport",
                "chain": "hostports",
                "handle": 4,
                "expr": [
                    {
                        "match": {
                            "op": "==",
                            "left": {"payload": {"protocol": "tcp", "field": "dport"}},
                            "right": 8000,
                        }
                    },
                    {"dnat": {"family": "ip", "addr": "10.244.0.5", "port": 8080}},
                ],
            }
        },
    ]
}
"""The portmap plugin with its nftables backend, and a host port that a service has as an external IP, too."""


def assessed(text: str, node: Node, *flows: str, nft: str | None = None) -> Assessment:
    require(IptablesBackend("iptables-legacy"))
    rules = read_ruleset(text.encode(), name="rules")
    snapshot = Snapshot(name="node", rules={(Variant.LEGACY, Family.IP): rules}, node=node, nft=nft)
    options = AssessOptions(version=(1, 37), corpus=False, only=flows)
    (assessment,) = assess_snapshot(snapshot, options, progress=lambda *_: None).assessments
    return assessment


def rules_at(difference: OrderDifference) -> str:
    return "\n".join(line.origin.text for line in difference.lines)


@pytest.mark.parametrize(
    ("beside", "flow", "binding", "rule"),
    [
        ("flannel", ERP, Binding.DNAT, "--to-destination 10.244.0.9:443"),
        ("flannel", CLOSED, Binding.VERDICT, ":FORWARD DROP"),
        ("aws-vpc-cni", REDIS, Binding.MARK, "-j CONNMARK --set-xmark 0x80/0x80"),
        ("ip-masq-agent", FRONTEND, Binding.DNAT, "--to-destination 10.244.0.5:1053"),
        ("ip-masq-agent", ERP, Binding.MARK, "-j MASQUERADE --random-fully"),
        ("port-maps", FRONTEND, Binding.DNAT, "--to-destination 10.244.0.4:7000"),
        ("tailscale", DIAMETER, Binding.MARK, "-A ts-postrouting"),
    ],
)
def test_the_order_decides_about_packets_that_both_components_handle(
    beside: str, flow: str, binding: Binding, rule: str
) -> None:
    text, node = beside_kube(beside)
    assessment = assessed(text, node, flow)
    (difference,) = assessment.orders
    assert difference.binding is binding
    assert rule in rules_at(difference)
    assert [changed.flow.id for changed in difference.examples] == [flow]
    assert assessment.changes


def test_calico_decides_nothing_at_kube_proxys_places() -> None:
    text, node = beside_kube("calico")
    assert not assessed(text, node, ERP, FRONTEND, REDIS).orders


def test_a_table_of_the_snapshot_is_loaded_on_both_sides_and_in_both_orders() -> None:
    text, node = (REAL / "rules.iptables-save").read_text(), beside_kube("flannel")[1]
    assessment = assessed(text, node, ERP, nft=json.dumps(PORTMAP))
    (difference,) = assessment.orders
    assert difference.order.later == ("inet cni_hostport",)
    assert difference.order.places == ("prerouting, priority -100",)
    assert difference.binding is Binding.DNAT
    (changed,) = difference.examples
    service, host_port = (parse_address(Family.IP, a) for a in ("10.244.2.50", "10.244.0.5"))
    assert (changed.before.dst, changed.after.dst) == (service, host_port)
    assert any("loaded in both modes: inet cni_hostport" in a for a in assessment.facts.assumed)


def test_a_table_that_cannot_be_loaded_is_named_with_the_reason() -> None:
    odd = json.loads(json.dumps(PORTMAP))
    odd["nftables"][5]["rule"]["expr"].append({"xt": {"type": "target", "name": "LOG"}})
    text, node = (REAL / "rules.iptables-save").read_text(), beside_kube("flannel")[1]
    assessment = assessed(text, node, ERP, nft=json.dumps(odd))
    assert not assessment.orders
    (note,) = (a for a in assessment.facts.assumed if "cni_hostport" in a)
    assert "cannot be loaded here, and its effect on packets remains unknown" in note


def test_a_table_with_a_priority_of_its_own_has_one_order() -> None:
    moved = json.loads(json.dumps(PORTMAP))
    moved["nftables"][3]["chain"]["prio"] = -101
    text, node = (REAL / "rules.iptables-save").read_text(), beside_kube("flannel")[1]
    assert not assessed(text, node, ERP, nft=json.dumps(moved)).orders


def test_a_table_that_counts_packets_keeps_its_place_between_flows() -> None:
    counting = json.loads(json.dumps(PORTMAP))
    counting["nftables"][5]["rule"]["expr"].insert(1, {"limit": {"rate": 100000, "per": "second"}})
    text, node = (REAL / "rules.iptables-save").read_text(), beside_kube("flannel")[1]
    (difference,) = assessed(text, node, ERP, FRONTEND, nft=json.dumps(counting)).orders
    before, after = difference.examples[0].before, difference.examples[0].after
    assert (before.dst, after.dst) == tuple(
        parse_address(Family.IP, a) for a in ("10.244.2.50", "10.244.0.5")
    )
