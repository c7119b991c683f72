from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from backends.model.flow import Flow, Send
from backends.model.node import Node, node_from_json
from harness.corpus.random.flows import random_flows
from translate.ir import Protocol, Ruleset, TcpFlag
from translate.read import read_ruleset

KIND = Path(__file__).parents[4] / "corpus" / "rulesets" / "kind-node"


@pytest.fixture(scope="module")
def kind() -> tuple[Ruleset, Node]:
    rules = read_ruleset((KIND / "rules.iptables-save").read_bytes(), name="kind")
    return rules, node_from_json((KIND / "worker.json").read_text(), name="worker")


@pytest.fixture(scope="module")
def flows(kind: tuple[Ruleset, Node]) -> list[Flow]:
    return list(random_flows(*kind, seed=1, count=2000))


def test_the_same_seed_draws_the_same_flows(kind: tuple[Ruleset, Node], flows: list[Flow]) -> None:
    assert list(random_flows(*kind, seed=1, count=50)) == flows[:50]
    assert list(random_flows(*kind, seed=2, count=50)) != flows[:50]
    assert len({f.id for f in flows}) == len(flows)


def test_flows_meet_the_rules_constants_and_every_kind_of_packet(flows: list[Flow]) -> None:
    firsts = [f.first.packet for f in flows]
    for share, count in (
        (0.05, sum(p.dst == 0x0A60000A and p.dport == 53 for p in firsts)),  # 10.96.0.10:53
        (0.15, sum(f.first.entry is None for f in flows)),
        (0.05, sum(p.proto == Protocol.ICMP for p in firsts)),
        (0.01, sum(p.bad_checksum for p in firsts)),
        (0.03, sum(p.ttl == 1 for p in firsts)),
        (0.03, sum(p.proto == Protocol.TCP and p.flags != TcpFlag.SYN for p in firsts)),
        (0.01, sum(p.mark in (0x4000, 0x8000) for p in firsts)),
        (0.30, sum(len(f.steps) > 1 for f in flows)),
    ):
        assert count > share * len(flows)


def test_source_ports_are_mostly_unique(flows: list[Flow]) -> None:
    ports = Counter((p.proto, p.sport) for f in flows if (p := f.first.packet).has_ports)
    assert sum(1 for n in ports.values() if n == 1) > 0.75 * len(ports)


def test_packets_have_what_their_protocol_has(flows: list[Flow]) -> None:
    for flow in flows:
        for step in flow.steps:
            if isinstance(step, Send):
                packet = step.packet
                assert packet.has_ports == (packet.sport is not None) == (packet.dport is not None)
                assert packet.is_icmp == (packet.icmp_type is not None)
                assert step.entry is None or packet.mark == 0
