"""The value of a packet beside a test that failed: the one that it has at this hook, after NAT."""

from __future__ import annotations

from backends.model.contract import Job
from backends.model.node import Node
from harness.explain.explain import explain
from harness.explain.packetspec import parse_packet
from harness.report.path import path_lines
from translate.ir import Family
from translate.read import read_save

RULES = """\
*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p udp -m udp --dport 54 -j ACCEPT
-A PREROUTING -p udp -m udp --dport 53 -j DNAT --to-destination 10.244.0.4:5353
COMMIT
*filter
:FORWARD DROP [0:0]
-A FORWARD -s 192.0.2.0/24 -j ACCEPT
-A FORWARD -d 192.0.2.1/32 -j ACCEPT
-A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT
COMMIT
*mangle
:FORWARD ACCEPT [0:0]
-A FORWARD -p tcp -j ACCEPT
-A FORWARD -p udp -m udp --dport 53 -j ACCEPT
-A FORWARD -i eth0 -j ACCEPT
:POSTROUTING ACCEPT [0:0]
-A POSTROUTING -o pod5 -j ACCEPT
-A POSTROUTING -m mark --mark 0x4/0x4 -j ACCEPT
-A POSTROUTING -m ttl --ttl-eq 9 -j ACCEPT
COMMIT
"""


def lines(node: Node) -> list[str]:
    job = Job(rules=read_save(RULES, name="rules", family=Family.IP), node=node)
    flow = parse_packet("udp 10.244.0.5:1000 > 10.96.0.10:53 in pod5", node)
    (branch,) = explain(job, flow).branches
    return path_lines(branch.steps[0], Family.IP, every_rule=True)


def test_each_field_has_the_value_of_this_hook(worker: Job) -> None:
    told = [line.partition("test failed: ")[2] for line in lines(worker.node) if "test failed" in line]
    assert told == [
        "l4.dport is 54; here it is 53",
        "l4.proto is tcp; here it is udp",
        "l4.dport is 53; here it is 5353",
        "meta.iif is eth0; here it is pod5",
        "ip.saddr is 192.0.2.0/24; here it is 10.244.0.5",
        "ip.daddr is 192.0.2.1; here it is 10.244.0.4",
        "ct.state is ESTABLISHED; here it is NEW",
    ]


def test_a_field_that_rules_may_change_on_the_way_has_no_value(worker: Job) -> None:
    job = Job(
        rules=read_save(RULES.replace("FORWARD DROP", "FORWARD ACCEPT"), name="r", family=Family.IP),
        node=worker.node,
    )
    flow = parse_packet("udp 10.244.0.5:1000 > 10.96.0.10:53 in pod5", worker.node)
    (branch,) = explain(job, flow).branches
    told = [line for line in path_lines(branch.steps[0], Family.IP, every_rule=True) if "test failed" in line]
    assert told[-3].endswith("meta.oif is pod5; here it is dns4")
    assert told[-2].endswith("meta.mark & 0x4 is 0x4; here it is 0x0")
    assert told[-1].endswith("ip.ttl is 9")
