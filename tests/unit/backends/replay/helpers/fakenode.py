"""A node with made-up answers, for tests of the replayer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import cast

from backends.model.flow import Flow, Repeated, Send, Step
from backends.model.outcome import FlowResult, Outcome
from backends.model.packet import Packet
from backends.replay.loader import Loader, Watched
from backends.replay.pipe import pack_flows, pack_results, unpack_flows, unpack_results
from backends.replay.replayer import Replayer
from backends.testbed.tapnode import Sighting, TapNode
from backends.wire.frames import build
from backends.wire.parsing import parse
from translate.ir import Family

UDP = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=10, dport=20)
TCP = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=10, dport=20)
Behaviour = Callable[[Packet], list[Sighting]]


def out(packet: Packet, device: str | None = "b", *, mark: int | None = 0) -> Sighting:
    """Return a packet as it leaves by a device; None: as it is delivered."""
    return Sighting(build(packet), device, mark)


class Node:
    """Answers each packet by ``behaviour``; the answers of ``late`` arrive when the node settles."""

    family = Family.IP

    def __init__(self, behaviour: Behaviour, late: Behaviour | None = None) -> None:
        self._behaviour, self._late = behaviour, late
        self._now: list[Sighting] = []
        self._later: list[Sighting] = []
        self.sent: list[Packet] = []
        self.slept = 0.0
        self.processors: list[int] = []

    def run_on(self, cpu: int) -> None:
        self.processors.append(cpu)

    def listen(self, proto: int) -> None:
        pass

    def inject(
        self, device: str, data: bytes, *, source: int | None = None, destination: int | None = None
    ) -> None:
        if device != "a":
            raise KeyError(device)
        self._take(parse(data).packet)

    def originate(self, data: bytes, *, mark: int, uid: int = 0, gid: int = 0) -> int:
        self._take(replace(parse(data).packet, mark=mark))
        return 0

    def _take(self, packet: Packet) -> None:
        self.sent.append(packet)
        self._now += self._behaviour(packet)
        if self._late is not None:
            self._later += self._late(packet)

    def drain(self, at_most: int = 1) -> list[Sighting]:
        now, self._now = self._now, []
        return now

    def unrouted(self) -> int:
        return 0

    def settle(self) -> list[Sighting]:
        now, self._later = self._later, []
        return self.drain() + now

    def wait(self, seconds: float) -> None:
        self.slept += seconds


class Forgetful:
    """A loader that counts its deletions of connections; ``single`` and ``alone`` are its answers."""

    def __init__(self, *, lists: bool = False, single: bool = False, alone: bool = False) -> None:
        self.lists = lists
        self.watches = False
        self.pins = False
        self.gives_ports = False
        self.gap = 0.0
        self.port_boundaries: tuple[int, ...] | None = ()
        self.times = 0
        self.emptied = 0
        self.names: list[frozenset[str] | None] = []
        self.looked = 0
        self.single = single
        self.alone = alone
        self.left: list[list[object]] = []
        self.fills = True
        self.forgotten: list[object] = []

    def forget_one(self, tap: object, sent: Packet) -> bool:
        self.forgotten.append(sent.sport)
        return self.single

    def forget_all(self, tap: object, sent: Sequence[Packet]) -> bool:
        self.left.append([packet.sport for packet in sent])
        return self.alone

    def forget_connections(self, tap: object) -> None:
        self.times += 1

    def forget_lists(self) -> None:
        self.emptied += 1

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        self.names.append(names)
        self.forget_lists()

    def watch(self) -> None:
        self.looked += 1

    def watched(self) -> Watched:
        return Watched(Fraction(1, 3), lists=self.fills)


def replay_all(
    node: Node, flows: Sequence[Flow | Repeated], loader: Forgetful | None = None
) -> list[FlowResult]:
    """Replay as a session does: flows and results are converted to bytes and back."""
    replayer = Replayer(cast(TapNode, node), cast(Loader, loader or Forgetful()))
    flows_there = unpack_flows(pack_flows(flows, node.family))
    return unpack_results(pack_results(replayer.replay(flows_there)))


def replay(
    node: Node,
    *steps: Step,
    entry: str | None = "a",
    packet: Packet = UDP,
    loader: Forgetful | None = None,
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """Return the outcomes and notes of one flow, which begins with ``packet``."""
    flow = Flow(id="f", steps=(Send(packet=packet, entry=entry), *steps))
    (result,) = replay_all(node, [flow], loader)
    return result.branches[0].outcomes, result.notes


def icmp(packet: Packet, kind: int, code: int) -> Packet:
    """Return an ICMP error about a packet."""
    return Packet(
        family=Family.IP, src=9, dst=packet.src, proto=1, icmp_type=kind, icmp_code=code, quoted=packet
    )


def forgotten(behaviour: Behaviour, *packets: Packet) -> int:
    """Return how often all connections were deleted during the replay of a flow for each packet."""
    node, loader = Node(behaviour), Forgetful()
    flows = [Flow(id=str(n), steps=(Send(packet=p, entry="a"),)) for n, p in enumerate(packets)]
    replay_all(node, flows, loader)
    return loader.times
