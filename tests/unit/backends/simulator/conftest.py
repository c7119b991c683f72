"""A small node, and rules as text, so that a test is a few lines of iptables and packets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send, Step
from backends.model.node import node_from_json
from backends.model.outcome import Outcome
from backends.model.packet import Packet
from backends.simulator import simulate
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

NODE = """{
  "interfaces": {"west": ["10.1.0.1/24"], "east": ["10.2.0.1/24"], "up": ["192.0.2.1/24"]},
  "routes": [{"dst": "default", "via": "192.0.2.254", "dev": "up"}],
  "sysctls": {%s}
}"""

CHAINS = {
    "raw": ("PREROUTING", "OUTPUT"),
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}

Branches = dict[tuple[Outcome, ...], Fraction]


class Lab:
    """Runs packets: ``lab.run(rules, *steps)``; rules are ``table: -A …`` lines."""

    def __init__(self) -> None:
        self.sysctls: dict[str, str] = {}

    @staticmethod
    def ip(text: str) -> int:
        return parse_address(Family.IP, text)

    def packet(self, proto: int, src: str, dst: str, **fields: Any) -> Packet:
        bare = Packet(family=Family.IP, src=self.ip(src), dst=self.ip(dst), proto=proto)
        return replace(bare, **fields)

    def udp(self, src: str, dst: str, entry: str | None = "west", **fields: Any) -> Send:
        packet = self.packet(Protocol.UDP, src, dst, **{"sport": 4000, "dport": 53, **fields})
        return Send(packet=packet, entry=entry)

    def tcp(self, src: str, dst: str, entry: str | None = "west", **fields: Any) -> Send:
        packet = self.packet(Protocol.TCP, src, dst, **{"sport": 4000, "dport": 80, **fields})
        return Send(packet=packet, entry=entry)

    def icmp(self, src: str, dst: str, entry: str | None = "west", **fields: Any) -> Send:
        values = {"icmp_type": 8, "icmp_code": 0, "icmp_id": 77, **fields}
        return Send(packet=self.packet(Protocol.ICMP, src, dst, **values), entry=entry)

    def job(self, rules: str) -> Job:
        tables: dict[str, list[str]] = {}
        for line in filter(None, map(str.strip, rules.splitlines())):
            table, _, rule = line.partition(": ")
            tables.setdefault(table, []).append(rule)
        text = ""
        for table, lines in tables.items():
            policies = {x.split()[1]: x.split()[2] for x in lines if x.startswith("-P")}
            text += f"*{table}\n"
            text += "".join(f":{c} {policies.get(c, 'ACCEPT')} [0:0]\n" for c in CHAINS[table])
            text += "".join(f":{x.split()[1]} - [0:0]\n" for x in lines if x.startswith("-N"))
            text += "".join(f"{x}\n" for x in lines if x.startswith("-A")) + "COMMIT\n"
        sysctls = ", ".join(f'"{k}": "{v}"' for k, v in self.sysctls.items())
        node = node_from_json(NODE % sysctls, name="node")
        return Job(rules=read_ruleset(text.encode(), name="rules"), node=node)

    def branches(self, rules: str, *steps: Step) -> Branches:
        result = simulate(self.job(rules), Flow(id="test", steps=steps))
        assert sum(b.probability for b in result.branches) == 1
        return {b.outcomes: b.probability for b in result.branches}

    def run(self, rules: str, *steps: Step) -> tuple[Outcome, ...]:
        """The outcomes of a flow that can go only one way."""
        (only,) = self.branches(rules, *steps)
        return only


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def ip() -> Callable[[str], int]:
    return Lab.ip
