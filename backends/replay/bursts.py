"""Replays of many datagrams at once: all are sent before their outcomes are read.

Most flows of a big corpus are a single datagram that leaves the node. The replay of a single datagram spends
most of its time waiting for the packet to come out. Here a burst of datagrams is sent, and then all packets
that come out are read. Only certain outcomes count: a datagram that left once, or was delivered once,
complete, with correct checksums, its mark and its source port, and without any answer. All other flows have
no outcome here; :class:`~backends.replay.replayer.Replayer` sends them again, one by one, after the node has
forgotten the connections that they could meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from backends.model.flow import Flow, Repeated
from backends.testbed.tapnode import TapNode
from backends.wire.datagrams import DPORT, SPORT, Datagram, Passed, number_of, pack, unpack

__all__ = ["BURST", "groups", "send_burst"]

BURST: Final = 64
"""The number of flows sent at once: far fewer than fit into the smallest of the sockets' buffers."""


def groups(flows: Iterable[Flow | Repeated | Datagram]) -> Iterator[Flow | Repeated | list[Datagram]]:
    """Group consecutive flows that can be sent in one burst, because none can meet the connection of another.

    A datagram can meet an earlier connection only if its source port is a port of that connection.
    """
    group: list[Datagram] = []
    ports: set[int] = set()
    for flow in flows:
        if isinstance(flow, Flow | Repeated):
            if group:
                yield group
                group, ports = [], set()
            yield flow
            continue
        if flow[SPORT] in ports or len(group) == BURST:
            yield group
            group, ports = [], set()
        group.append(flow)
        ports.add(flow[SPORT])
        ports.add(flow[DPORT])
    if group:
        yield group


def send_burst(tap: TapNode, burst: Sequence[Datagram]) -> list[Passed | None]:
    """Send datagrams that do not influence each other, and return the outcome of each.

    The outcome is None if it is not certain. Raises KeyError for an interface that the node does not have.
    """
    family = tap.family
    for number, datagram in enumerate(burst):
        tap.inject(datagram[1], pack(datagram, number, family))
    results: list[Passed | None] = [None] * len(burst)
    heard = [0] * len(burst)
    for data, out, mark in tap.drain(at_most=BURST):
        unpacked = unpack(data, family)
        whose = number_of(data) if unpacked is None else unpacked[0]
        if whose is None or whose >= len(burst):
            return [None] * len(burst)  # certain only if they are sent one by one
        heard[whose] += 1
        if unpacked is None or mark is None:
            continue
        flow_id, _, sent_src, sent_dst, sent_sport, sent_dport, _ = burst[whose]
        _, src, dst, sport, dport, ttl = unpacked
        if sport != sent_sport:
            continue  # a burst may use up the ports of a NAT range
        dnat, snat = dst != sent_dst or dport != sent_dport, src != sent_src
        results[whose] = (flow_id, out, src, dst, sport, dport, ttl, mark, dnat, snat)
    return [passed if count == 1 else None for passed, count in zip(results, heard, strict=True)]
