"""Random rules that distinguish clients' ports, at services whose endpoint is chosen at random.

Nothing in them depends on a client's port in another way, so that the runs of a flow can be made at once from
ports between those that the rules test.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Reply, Send
from backends.model.packet import Packet
from tests.lab.random.played import node_of
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

__all__ = ["job_with_client_ports"]

_SERVICES: Final = (("tcp", "10.96.0.1", 80), ("udp", "10.96.0.2", 53))
_CLIENTS: Final = (("eth0", "172.18.0.9"), ("eth0", "198.51.100.7"), ("pod5", "10.244.0.5"))
_FLOWS: Final = 6
_LEAST_RANGE: Final = 100
"""The ports of a NAT range: as many connections as are made at the same time, and more."""
_TESTS: Final = (
    *3 * ("-p {p} -m {p} --dport {low}:{high}",),
    *("-p {p} -m {p} ! --sport {low}:{high}", "-p {p} -m multiport --ports {low},{high}"),
    *("-p {p} -m conntrack --ctorigsrcport {low}:{high}", "-p {p} -m conntrack --ctrepldstport {low}:{high}"),
)
_ACTIONS: Final = ("MARK --set-xmark {n}/0xff", "TTL --ttl-set {n}", "ACCEPT", "DROP")
_NAT: Final = ("MASQUERADE --to-ports {low}-{high}", "SNAT --to-source 10.244.0.1:{low}-{high}", "MASQUERADE")


def job_with_client_ports(seed: int) -> tuple[Job, tuple[Flow, ...]]:
    """Return the rules of a seed on a node, and flows to their services from ports beside those tested."""
    draw = random.Random(seed)
    tested = [draw.randrange(1024, 65536) for _ in range(3)] + [draw.randrange(40_000, 44_096), 30_000]
    text = "\n".join((*_mangle(draw, tested), *_nat(draw, tested), ""))
    rules = read_ruleset(text.encode(), name=f"client-ports-{seed}")
    return Job(rules=rules, node=node_of(Family.IP)), tuple(_flows(draw, tested))


def _interval(draw: random.Random, tested: list[int], least: int = 1) -> dict[str, int]:
    low = draw.choice(tested)
    return {"low": low, "high": min(low + draw.choice((least, least + 9, 5000)), (1 << 16) - 1)}


def _mangle(draw: random.Random, tested: list[int]) -> Iterator[str]:
    yield from ("*mangle", ":PREROUTING ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]")
    tests = _TESTS[:3] if draw.random() < 0.5 else _TESTS
    for _ in range(draw.randint(1, 3)):
        hook = draw.choice(("PREROUTING", "FORWARD", "POSTROUTING"))
        test = draw.choice(tests).format(p=draw.choice(("tcp", "udp")), **_interval(draw, tested))
        yield f"-A {hook} {test} -j {draw.choice(_ACTIONS).format(n=draw.randint(20, 90))}"
    yield "COMMIT"


def _nat(draw: random.Random, tested: list[int]) -> Iterator[str]:
    yield from ("*nat", ":PREROUTING ACCEPT [0:0]", ":POSTROUTING ACCEPT [0:0]")
    for proto, address, port in _SERVICES:
        service = f"-A PREROUTING -d {address}/32 -p {proto} -m {proto} --dport {port}"
        yield f"{service} -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.244.0.5"
        yield f"{service} -j DNAT --to-destination 10.244.0.4:{draw.choice(tested)}"
    for proto, _, _ in draw.sample(_SERVICES, draw.randint(0, 2)):
        nat = draw.choice(_NAT).format(**_interval(draw, tested, _LEAST_RANGE))
        yield f"-A POSTROUTING -d 10.244.0.0/16 -p {proto} -j {nat}"
    yield "COMMIT"


def _flows(draw: random.Random, tested: list[int]) -> Iterator[Flow]:
    for number in range(_FLOWS):
        proto, address, port = draw.choice(_SERVICES)
        entry, client = draw.choice(_CLIENTS)
        packet = Packet(
            family=Family.IP,
            src=parse_address(Family.IP, client),
            dst=parse_address(Family.IP, address),
            proto=Protocol[proto.upper()],
            sport=min(draw.choice(tested) + draw.randint(-6, 6), (1 << 16) - 1),
            dport=port,
        )
        later = (Reply(), Again(), Reply())[: draw.randint(0, 3)]
        yield Flow(id=str(number), steps=(Send(packet=packet, entry=entry), *later))
