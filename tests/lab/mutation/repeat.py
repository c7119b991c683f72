"""Repetitions of a flow from other source ports, to measure shares.

Each repetition is a flow of its own. Ports stay in the class in which the kernel's NAT would keep them (below
512, 600-1023, above; ``nf_nat_l4proto_unique_tuple``). All ports of a flow move by the same distance, so that
ports which clash on purpose still do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from backends.model.flow import Flow, Send, Step
from backends.model.packet import Packet, Port

__all__ = ["repetitions"]

_CLASSES = ((1, 511), (600, 1023), (1024, 65535))


def repetitions(flow: Flow, times: int) -> Iterator[Flow]:
    """Yield ``times`` flows like ``flow``, called ``id#1``, ``id#2``, … from other source ports."""
    for n in range(1, times + 1):
        steps = tuple(_moved(step, n) for step in flow.steps)
        yield replace(flow, id=f"{flow.id}#{n}", steps=steps)


def _moved(step: Step, distance: int) -> Step:
    if not isinstance(step, Send):
        return step
    packet = step.packet
    if packet.has_ports:
        packet = replace(packet, sport=_port(packet.sport, distance))
    elif packet.icmp_id is not None:
        packet = replace(packet, icmp_id=_identifier(packet.icmp_id, distance))
    return replace(step, packet=_quoting(packet, distance))


def _quoting(packet: Packet, distance: int) -> Packet:
    quoted = packet.quoted
    if quoted is None or not quoted.has_ports:
        return packet
    return replace(packet, quoted=replace(quoted, sport=_port(quoted.sport, distance)))


def _port(port: Port | None, distance: int) -> Port | None:
    if not isinstance(port, int):
        return port
    for low, high in _CLASSES:
        if low <= port <= high:
            return low + (port - low + distance) % (high - low + 1)
    return port


def _identifier(icmp_id: Port, distance: int) -> Port:
    return (icmp_id + distance) % 65536 if isinstance(icmp_id, int) else icmp_id
