"""Flows between a few hosts and a node, whatever its rules: single packets, and long sequences.

Sequences are for rules that count the packets or connections of each host, as ``-m recent`` does.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Final

from backends.model.flow import Flow, Reply, Send
from backends.model.node import Node
from backends.model.packet import Packet
from harness.corpus.formats.headers import with_header
from tests.lab.mutation.payloads import with_lengths, with_payloads
from translate.ir import (
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Field,
    HashLimit,
    PacketType,
    Protocol,
    Quota,
    Recent,
    RecentMode,
    Ruleset,
    SetUpdate,
    Test,
    WordTest,
)

__all__ = ["COUNTING", "IDENTIFIER", "plain_flows", "sequences_between_hosts", "special_flows"]

IDENTIFIER: Final = 7
"""The identifier of a query of ICMP that has no other one."""


def plain_flows(node: Node, family: Family) -> Iterator[Flow]:
    """Yield a packet of each usual protocol that the node forwards, receives and sends."""
    own = [(i.name, a) for i in node.interfaces for a in i.addresses if a.family is family]
    (entry, here), (_, there) = own[0], next(o for o in own if o[0] != own[0][0])
    neighbour, far = here.value ^ _HOST, there.value ^ _HOST
    icmp = Protocol.ICMP if family is Family.IP else Protocol.ICMPV6
    ports = {"sport": _SOURCE_PORT, "dport": _DESTINATION_PORT}
    query = 8 if family is Family.IP else 128
    headers: dict[int, dict[str, Any]] = {
        Protocol.TCP: ports,
        Protocol.UDP: ports,
        icmp: {"icmp_type": query, "icmp_code": 0, "icmp_id": IDENTIFIER},
    }
    ways: dict[str, tuple[int, int, str | None]] = {
        "forwarded": (neighbour, far, entry),
        "received": (neighbour, here.value, entry),
        "sent": (here.value, neighbour, None),
    }
    for (way, (src, dst, enters)), (proto, header) in product(ways.items(), headers.items()):
        packet = Packet(family=family, src=src, dst=dst, proto=int(proto), **header)
        yield Flow(id=f"plain-{way}-{int(proto)}", steps=(Send(packet=packet, entry=enters),))


def label_flows(node: Node, family: Family) -> Iterator[Flow]:
    """Yield connections that FORWARD does not see when they begin, but later.

    It sees the answer to a datagram that the node has sent for a host, and an error from a router behind the
    node about a datagram to the node.
    """
    own = [(i.name, a) for i in node.interfaces for a in i.addresses if a.family is family]
    (entry, here), (behind, there) = own[0], next(o for o in own if o[0] != own[0][0])
    neighbour, far = here.value ^ _HOST, there.value ^ _HOST
    sent = Packet(
        family=family,
        src=neighbour,
        dst=far,
        proto=int(Protocol.UDP),
        sport=_SOURCE_PORT,
        dport=_DESTINATION_PORT,
    )
    yield Flow(id="label-answered", steps=(Send(packet=sent, entry=None), Reply()))
    received = replace(sent, dst=here.value)
    icmp, kind, code = (Protocol.ICMP, 3, 1) if family is Family.IP else (Protocol.ICMPV6, 1, 3)
    error = Packet(
        family=family,
        src=far,
        dst=neighbour,
        proto=int(icmp),
        icmp_type=kind,
        icmp_code=code,
        quoted=received,
    )
    steps = (Send(packet=received, entry=entry), Send(packet=error, entry=behind))
    yield Flow(id="label-error", steps=steps)


def zero_flows(node: Node) -> Iterator[Flow]:
    """Yield packets of IPv4 with addresses that no set takes, or the next one: UDP first, and TCP."""
    entered = node.interfaces[0]
    own = [a.value for i in node.interfaces for a in i.addresses if a.family is Family.IP]
    here, neighbour, far = own[0], own[0] ^ _HOST, own[-1] ^ _HOST
    pairs = ((1, far), (1, here), (neighbour, 1), (0, 0), (0, 0xFFFFFFFF))
    for number, (src, dst) in enumerate(pairs):
        packets = [
            Packet(
                family=Family.IP,
                src=src,
                dst=dst,
                proto=int(proto),
                sport=_SOURCE_PORT,
                dport=_DESTINATION_PORT,
            )
            for proto in (Protocol.UDP, Protocol.TCP)
        ]
        for sent in (packets, packets[1:]):
            steps = tuple(Send(packet=packet, entry=entered.name) for packet in sent)
            yield Flow(id=f"zero-{number}-{len(sent)}", steps=steps)


def special_flows(ruleset: Ruleset, node: Node) -> Iterator[Flow]:
    """Yield packets at the limit of a quota, frames to many for packets to one and to a group, packets with
    the words that ``-m u32`` tests, and those for labels and sets.
    """
    tests = [test for rule in ruleset.rules() for test in rule.tests]
    if any(isinstance(test, ConnLabel) and test.add for test in tests):
        yield from label_flows(node, ruleset.family)
    if ruleset.family is Family.IP and any(isinstance(test, SetUpdate) for test in tests):
        yield from zero_flows(node)
    received = [flow for flow in plain_flows(node, ruleset.family) if "received" in flow.id]
    for flow, test in product(received, tests):
        packet, entry = flow.first.packet, flow.first.entry
        changed: list[Packet | None] = []
        if isinstance(test, Quota):
            changed = [
                with_header(packet, Field.LENGTH, size, entry, forwarded=False) for size in _near(test)
            ]
        elif isinstance(test, ClusterShare):
            groups = [replace(packet, dst=dst) for dst in (packet.dst, *_GROUPS[ruleset.family])]
            changed = [
                with_header(each, Field.PACKET_TYPE, kind, entry, forwarded=False)
                for each, kind in product(
                    groups, (PacketType.UNICAST, PacketType.BROADCAST, PacketType.MULTICAST)
                )
            ]
        elif isinstance(test, WordTest) and packet.has_ports:
            changed = [replace(packet, payload=bytes(_WORDS)), *_with_words(packet, test)]
            changed += with_payloads(packet, test)
            if any(word.offset < _SIZE_OF_WORD for word in test.words):
                changed += with_lengths(packet, entry)
        elif isinstance(test, WordTest):
            bare: dict[str, Any] = dict.fromkeys(("icmp_type", "icmp_code", "icmp_id"))
            bare |= {"proto": packet.proto | 0x80, "payload": bytes(_WORDS)}
            changed = [replace(packet, **bare)]
        for number, each in enumerate(changed):
            if each is not None:
                yield replace(flow, id=f"{flow.id}-special-{number}", steps=(Send(packet=each, entry=entry),))


_SIZE_OF_WORD: Final = 4
_LONGEST: Final = 1500
_WORDS: Final = 40
"""Zeros that reach behind the words of the samples."""


def _with_words(packet: Packet, test: WordTest) -> Iterator[Packet]:
    """Yield the packet with halves of the tested words as its ports, behind the IP header."""
    for value in (interval.low for word in test.words for interval in word.values):
        for port in {value & 0xFFFF, value >> 16} - {0}:
            yield replace(packet, sport=port)
            yield replace(packet, dport=port)


def _near(quota: Quota) -> tuple[int, int, int]:
    return quota.size - 1, quota.size, quota.size + 1


_GROUPS: Final = {
    Family.IP: (0xE0000001, 0xE8000001, 0xEFFFFFFA, 0xDF000001, 0xFFFFFFFF),
    Family.IP6: (0xFF02 << 112 | 1, 0xFF0E << 112 | 1),
}
"""Groups at the ends of their prefix, and addresses beside it."""


def sequences_between_hosts(ruleset: Ruleset, node: Node, *, connections: bool) -> Iterator[Flow]:
    """Yield long flows between a few hosts, for rules that count the packets or connections of each.

    ``connections``: every packet begins one; otherwise only in every second flow.
    """
    draw = random.Random(0)
    family = ruleset.family
    # A set of nftables may lose an address that rules add and remove more than 16 times (docs/limits.md).
    removes = any(_removes(test) for rule in ruleset.rules() for test in rule.tests)
    entered = node.interfaces[0]
    own = [a.value for i in node.interfaces for a in i.addresses if a.family is family]
    near = [
        own[0] ^ _HOST,
        own[0] ^ _HOST ^ 1,
        own[0] ^ _HOST ^ _SUBNET[family],
        own[0] ^ _HOST ^ _SITE[family],
    ]
    far = [own[-1] ^ _HOST, own[-1] ^ _HOST ^ 1, own[-1] ^ _HOST ^ 3, *own]
    for number in range(_SEQUENCES):
        sources, targets = draw.sample(near, draw.choice((1, 2))), draw.sample(far, draw.choice((1, 2)))
        ports = draw.choice((1, 1, 2)), draw.choice((1, 1, 2))
        protocols = draw.choice([(6,), (17,), (6, 17), (17, 6, 6, 6)])
        steps = []
        for sent in range(draw.choice((4, 8, 12) if removes else (4, 8, 20, 44))):
            drawn = draw.randrange(ports[0])
            port = _SOURCE_PORT + (sent if connections or number % 2 else drawn)
            packet = Packet(
                family=family,
                src=draw.choice(sources),
                dst=draw.choice(targets),
                proto=draw.choice(protocols),
                sport=port,
                dport=80 + draw.randrange(ports[1]),
            )
            steps.append(Send(packet=packet, entry=entered.name))
        yield Flow(id=f"sequence-{number}", steps=tuple(steps))
    if connections:
        yield from _connections_in_turn(near, far, own, entered.name, family)


def _removes(test: Test) -> bool:
    return (isinstance(test, Recent) and test.mode is RecentMode.REMOVE) or (
        isinstance(test, SetUpdate) and test.delete
    )


def _connections_in_turn(
    near: Sequence[int], far: Sequence[int], own: Sequence[int], entry: str, family: Family
) -> Iterator[Flow]:
    """Yield flows of many connections, whose sources or targets are in turn two that some masks join."""
    others = (*near[1:], near[0] ^ _ALLOCATION[family])
    pairs = [((near[0], other), (to, to)) for other in others for to in (far[0], own[0])]
    pairs += [((near[0], near[0]), (far[0], other)) for other in (*far[1:3], far[0] ^ _SITE[family])]
    pairs += [((near[0], near[0]), (own[0], other)) for other in (own[0], own[1])]
    for number, (sources, targets) in enumerate(pairs):
        packets = [
            Packet(
                family=family,
                src=sources[sent % 2],
                dst=targets[sent % 2],
                proto=int(Protocol.TCP),
                sport=_SOURCE_PORT + sent,
                dport=_DESTINATION_PORT,
            )
            for sent in range(_CONNECTIONS)
        ]
        steps = tuple(Send(packet=packet, entry=entry) for packet in packets)
        yield Flow(id=f"in-turn-{number}", steps=steps)


_CONNECTIONS: Final = 40
"""More than twice the greatest limit of the samples that is not the greatest of all."""


COUNTING: Final = (Recent, HashLimit, ConnectionLimit, SetUpdate)
_SEQUENCES: Final = 100
_SUBNET: Final = {Family.IP: 0x200, Family.IP6: 1 << 64}
"""The difference between addresses in two networks of the usual size."""
_SITE: Final = {Family.IP: 0x40000, Family.IP6: 1 << 84}
_ALLOCATION: Final = {Family.IP: 1 << 26, Family.IP6: 1 << 100}
"""The difference between addresses in two networks as large as a registry allocates."""
_HOST: Final = 0x18
"""The difference between the last byte of a node's address and of its neighbour's."""
_SOURCE_PORT: Final = 40001
_DESTINATION_PORT: Final = 4000
