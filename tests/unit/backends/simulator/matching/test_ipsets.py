"""Membership in ipsets, as the kernel looks it up (``ip_set_getport.c``, ``ip_set_hash_gen.h``)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.outcome import Verdict
from backends.model.packet import Packet
from backends.simulator import simulate
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ipsets, read_ruleset, with_sets

SETS = b"""create p hash:ip,port
add p 192.0.2.9,tcp:80
add p 192.0.2.9,icmp:echo-request
add p 192.0.2.9,gre:0
create b bitmap:port range 0-65535
add b 80
create n hash:net
add n 198.51.100.0/24
add n 198.51.100.8/29 nomatch
add n 198.51.100.9
create e hash:ip
"""
NODE = node_from_json(
    '{"interfaces": {"eth0": ["192.0.2.9/24"]},'
    ' "routes": [{"dst": "default", "via": "192.0.2.1", "dev": "eth0"}]}',
    name="node",
)


def dropped(match: str, proto: int, *, src: str = "192.0.2.1", dport: int = 80, icmp: int = 8) -> bool:
    rules = f"*raw\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING -m set {match} -j DROP\nCOMMIT\n"
    ruleset = with_sets(read_ruleset(rules.encode(), name="rules"), read_ipsets(SETS, name="sets"))
    packet = Packet(
        family=Family.IP,
        src=parse_address(Family.IP, src),
        dst=parse_address(Family.IP, "192.0.2.9"),
        proto=proto,
    )
    if packet.has_ports:
        packet = replace(packet, sport=80, dport=dport)
    elif packet.is_icmp:
        packet = replace(packet, icmp_type=icmp, icmp_code=0, icmp_id=1)
    result = simulate(Job(rules=ruleset, node=NODE), Flow(id="x", steps=(Send(packet=packet, entry="eth0"),)))
    return result.branches[0].outcomes[0].verdict is Verdict.DROP


@pytest.mark.parametrize(
    ("match", "proto", "more", "hit"),
    [
        ("p dst,dst", Protocol.TCP, {}, True),
        ("p dst,dst", Protocol.TCP, {"dport": 81}, False),
        ("p dst,src", Protocol.TCP, {"dport": 81}, True),
        ("p dst,dst", Protocol.UDP, {}, False),
        ("p src,dst", Protocol.TCP, {}, False),
        ("p dst,dst", Protocol.ICMP, {}, True),
        ("p dst,src", Protocol.ICMP, {}, True),
        ("p dst,dst", Protocol.ICMP, {"icmp": 13}, False),
        ("p dst,dst", 47, {}, True),
        ("p dst,dst", 50, {}, False),
        ("b dst", Protocol.TCP, {}, True),
        ("b dst", Protocol.UDP, {}, True),
        ("b dst", Protocol.UDP, {"dport": 81}, False),
        ("b dst", Protocol.SCTP, {}, False),
        ("b dst", Protocol.ICMP, {}, False),
        ("n src", Protocol.UDP, {"src": "198.51.100.7"}, True),
        ("n src", Protocol.UDP, {"src": "198.51.100.8"}, False),
        ("n src", Protocol.UDP, {"src": "198.51.100.9"}, True),
        ("n src", Protocol.UDP, {"src": "198.51.101.1"}, False),
        ("e src", Protocol.UDP, {}, False),
    ],
)
def test_a_packet_is_in_a_set_or_not_and_negation_says_the_opposite(
    match: str, proto: int, more: dict[str, object], hit: bool
) -> None:
    assert dropped(f"--match-set {match}", proto, **more) is hit  # type: ignore[arg-type]
    assert dropped(f"! --match-set {match}", proto, **more) is not hit  # type: ignore[arg-type]
