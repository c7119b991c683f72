"""Several runs of a flow at the same time, each from a source port of its own.

A flow with random outcomes runs up to hundreds of times. One run after the other, most of the time goes into
waiting for a packet to come out and into forgetting its connection. Here the first packets of all runs are
sent, and everything that comes out is read; then the second ones, and so on. No run meets the connection of
another (:mod:`backends.wire.shifting`). No rule distinguishes their source ports from that of the flow
(:func:`backends.model.sourceports.port_boundaries`).

Only certain outcomes count: every packet came out exactly once, and nothing else did. In all other cases
there is no result, and the runs are made one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.packet import Packet
from backends.replay.observed import FrameReader, observe
from backends.replay.runs import FlowRuns, Run, RunningFlow, Turn
from backends.testbed.tapnode import Sighting, TapNode
from backends.wire.shifting import Shift, key
from translate.ir import Protocol

__all__ = ["FEWEST", "MOST", "can_run_at_once", "ports_for_runs", "run_at_once"]

FEWEST: Final = 4
"""Fewer runs are made one by one."""
MOST: Final = 64
"""The number of packets sent at once: far fewer than fit into the smallest of the sockets' buffers."""
_UNPRIVILEGED: Final = range(1024, 1 << 16)
"""For other ports, NAT chooses from other ranges (``nf_nat_l4proto_unique_tuple``)."""


_USUAL: Final = range(40_000, 44_096)
"""The source ports that are used in turn, if all are possible.

When all have been used, their connections are forgotten: before the kernel's table is full, and it drops some
(``early_drop``).
"""


def ports_for_runs(*possible: range) -> range:
    """Return the source ports to use, if those in all of these ranges are possible."""
    usual = _common(_USUAL, *possible)
    return usual if len(usual) >= MOST else _common(_UNPRIVILEGED, *possible)[: len(_USUAL)]


def _common(*ranges: range) -> range:
    start = max(each.start for each in ranges)
    return range(start, max(start, min(each.stop for each in ranges)))


def can_run_at_once(flow: Flow) -> bool:
    """Return whether the packets of a flow are such that it can run several times at the same time."""
    packet = flow.first.packet
    return (
        packet.proto in (Protocol.TCP, Protocol.UDP)
        and packet.sport in _UNPRIVILEGED
        and all(_is_from(packet, step) for step in flow.steps)
    )


def _is_from(first: Packet, step: Step) -> bool:
    """Return whether a step is an answer, or a packet from the port of the first one."""
    match step:
        case Send(packet=packet):
            return (packet.proto, packet.sport) == (first.proto, first.sport)
        case Reply() | Again():
            return True
        case IcmpError() | Pause():
            return False


def run_at_once(
    tap: TapNode, flow: Flow, runs: FlowRuns, reader: FrameReader, ports: Sequence[int]
) -> list[tuple[Run, bool]] | None:
    """Run a flow once from each port; return the runs, and whether each is new.

    A run is described with the source port of the flow. None if one is not certain. Raises KeyError for an
    interface that the node does not have.
    """
    base = flow.first.packet.sport
    assert isinstance(base, int)
    shifts = [Shift(base, port, number) for number, port in enumerate(ports)]
    running = [runs.begin() for _ in ports]
    for number, step in enumerate(flow.steps, 1):
        assert not isinstance(step, Pause)
        turns = [run.turn(step, number) for run in running]
        if not _exchange(tap, shifts, running, turns, reader):
            return None
    return [run.ended() for run in running]


def _exchange(
    tap: TapNode,
    shifts: Sequence[Shift],
    running: Sequence[RunningFlow],
    turns: Sequence[Turn],
    reader: FrameReader,
) -> bool:
    """Send one packet of each run, and hand it what came out; return False if that is not certain."""
    senders: dict[bytes, int] = {}
    reply = isinstance(turns[0].step, Reply)
    for number, (shift, turn) in enumerate(zip(shifts, turns, strict=True)):
        if turn.emission is None:
            continue
        frame = shift.sent(turn.frame, reply=reply)
        own = None if frame is None else key(frame)
        if frame is None or own is None or own in senders:
            return False
        senders[own] = number
        packet, entry = turn.emission.packet, turn.emission.entry
        tap.listen(packet.proto)
        if entry is None:
            tap.originate(frame, mark=packet.mark, uid=packet.uid, gid=packet.gid)
        else:
            tap.inject(entry, frame, source=packet.smac, destination=packet.dmac)
    if not senders:
        return True
    sightings = tap.drain(at_most=len(turns))
    sightings += tap.settle()
    if len(sightings) != len(senders):
        return False
    for data, out, mark in sightings:
        own = key(data)
        whose = None if own is None else senders.pop(own, None)
        alone = None if whose is None else shifts[whose].received(data, reply=reply)
        if whose is None or alone is None:
            return False
        _react(running[whose], turns[whose], (Sighting(alone, out, mark),), reader)
    return True


def _react(running: RunningFlow, turn: Turn, sightings: tuple[Sighting, ...], reader: FrameReader) -> None:
    observed = None
    if sightings not in turn.reactions:
        assert turn.emission is not None
        observed = observe(turn.emission, turn.identity, sightings, reader)
    running.react(turn, sightings, observed)
