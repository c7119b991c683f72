"""Replays flows on a TapNode and reports the outcome of each packet.

Runs in the process of the node. When the stack has no more work, everything that came out after a packet is
known; :mod:`.observed` says what it shows.

A packet that the node sends to itself crosses ``lo`` and is ``local``, with ``out`` None, like any other
delivery: it does not leave on ``lo``.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from backends.model.flow import Flow, Pause, Repeated, Send
from backends.model.outcome import FlowResult, Outcome, seen_branches
from backends.model.packet import Packet, Port
from backends.model.sourceports import ports_alike
from backends.replay.bursts import groups, send_burst
from backends.replay.loader import Loader, Watched
from backends.replay.observed import FrameReader, Observed, observe
from backends.replay.runs import FlowRuns, Run, Turn, source_port
from backends.replay.runs_at_once import FEWEST, MOST, can_run_at_once, ports_for_runs, run_at_once
from backends.replay.unrouted import UnroutedPackets
from backends.testbed.tapnode import Sighting, TapNode
from backends.wire.datagrams import DPORT, SPORT, Datagram, Passed, flow_of
from translate.dataclass import dataclass, field
from translate.errors import MachineError
from translate.ir import Protocol

__all__ = ["Replayer"]

_MOSTLY: Final = 4
_ALONE: Final = 1024
"""The number of flows to send one by one after a burst with too many uncertain outcomes.

Too many are more than one in :data:`_MOSTLY`.
"""
_FEW: Final = 8
"""The greatest number of packets whose connections are forgotten one by one."""


@dataclass(slots=True)
class Replayer:
    """Replays flows on ``tap``, whose rules ``loader`` has loaded."""

    tap: TapNode
    loader: Loader
    _used: defaultdict[int, set[Port | None]] = field(default_factory=lambda: defaultdict(set))
    """The ports of each protocol at which a flow could meet a connection that is not forgotten."""
    _alone: int = 0
    """The number of flows to send one by one before the next burst."""
    _filled: frozenset[str] | None = frozenset()
    """The lists of addresses that may have entries; None if all may."""
    _crowded: bool = False
    """True if a translated source port is still in use: a small range of them would soon be exhausted."""
    _openers: list[Packet] | None = field(default_factory=list)
    """The packets with which the connections that are not forgotten may have begun; None if they are many."""
    _next: dict[range, int] = field(default_factory=dict)
    """The next of some source ports for runs that are made at once."""
    _unrouted: UnroutedPackets = field(default_factory=UnroutedPackets)
    _reader: FrameReader = field(default_factory=FrameReader)
    """Reads the packets that come out in the runs of one flow."""

    def replay(self, flows: Iterable[Flow | Repeated | Datagram]) -> list[FlowResult | Passed]:
        """Run the flows one after the other, or in bursts if that gives the same results."""
        results: list[FlowResult | Passed] = []
        for group in groups(flows):
            if isinstance(group, Repeated):
                results.append(self._repeated(group))
            elif isinstance(group, Flow):
                self._alone = max(0, self._alone - 1)
                results.append(self._once(group))
            elif len(group) == 1 or self.loader.lists or self.loader.watches or self._alone:
                self._alone = max(0, self._alone - len(group))
                results += [self._once(flow_of(datagram, self.tap.family)) for datagram in group]
            else:
                results += self._burst(group)
        return results

    def _once(self, flow: Flow) -> FlowResult:
        return self._repeated(Repeated(flow, 1))

    def _repeated(self, repeated: Repeated) -> FlowResult:
        """Run a flow as often as it requires.

        Watching is slow, so only the first run is watched, and those whose lists have to be emptied.
        """
        flow, loader = repeated.flow, self.loader
        watches = loader.watches and repeated.watched
        runs, began, watched = FlowRuns(flow), time.perf_counter(), Watched()
        counts: Counter[tuple[Outcome, ...]] = Counter()
        notes: dict[str, None] = {}
        openers: tuple[Packet, ...] = ()
        self._reader = FrameReader()
        ports = self._ports_for(repeated)
        for number in range(repeated.times):
            fills = loader.lists and (repeated.lists or watched.lists)
            if ports and not fills and not watched.dependent and (number or not watches):
                made = self._at_once(flow, repeated.times - number, runs, ports)
                ports = range(0)
                counts.update([run.outcomes for run in made])
                notes.update(dict.fromkeys(note for run in made for note in run.notes))
                if made:
                    openers = ()
                    break
            if not number:
                self._forget_connections_met_by(flow)
            elif fills:
                loader.forget_filled_lists(None if watched.lists else repeated.filled)
            if watches and (fills or not number):
                loader.watch()
                run = self._flow(flow, runs)
                observations = loader.watched()
                watched = watched if number else observations
            else:
                run = self._flow(flow, runs)
            if number + 1 < repeated.times:
                self._forget_run(run)
            openers = run.beginnings
            counts[run.outcomes] += 1
            notes.update(dict.fromkeys(run.notes))
        self._record_connections(openers)
        # Other runs may have visited other chains.
        certain = watches and repeated.times == 1
        if loader.lists and (watched.lists if certain else repeated.lists or watched.lists):
            self._filled = None if watched.lists else repeated.filled
        return FlowResult(
            flow.id,
            seen_branches(counts),
            tuple(notes),
            repeated.times,
            rarest=watched.rarest,
            lists=watched.lists,
            dependent=watched.dependent,
            settled=watched.settled,
            seconds=time.perf_counter() - began,
        )

    def _ports_for(self, repeated: Repeated) -> range:
        """Return source ports for runs of a flow that are made at once; none if they cannot be."""
        flow, loader = repeated.flow, self.loader
        boundaries, port = loader.port_boundaries, flow.first.packet.sport
        if loader.pins or loader.gap or boundaries is None or not isinstance(port, int):
            return range(0)
        if not can_run_at_once(flow):
            return range(0)
        return ports_for_runs(repeated.ports, ports_alike(port, boundaries))

    def _at_once(self, flow: Flow, times: int, runs: FlowRuns, ports: range) -> list[Run]:
        """Run a flow several times at once; return no runs if an outcome is not certain."""
        made: list[Run] = []
        if min(times, len(ports)) < FEWEST:
            return made
        used = self._used[flow.first.packet.proto]
        while len(made) < times:
            chosen = self._next_ports(ports, min(times - len(made), MOST, len(ports)))
            self._forget_if(self._meets(not used.isdisjoint(chosen)))
            self._openers = None
            used.update(chosen)
            try:
                ended = run_at_once(self.tap, flow, runs, self._reader, chosen)
            except KeyError as e:
                raise MachineError(f"the node has no interface {e}") from None
            if ended is None:
                self._crowded = True
                self._forget_if(True)
                return []
            for run, new in ended:
                made.append(run)
                if new:
                    for packet in run.packets:
                        self._remember(packet)
        return made

    def _next_ports(self, ports: range, number: int) -> range:
        """Return source ports for one burst, in turn, because forgetting connections takes long."""
        start = self._next.get(ports, ports.start)
        if start + number > ports.stop:
            start = ports.start
        self._next[ports] = start + number
        return range(start, start + number)

    def _burst(self, burst: list[Datagram]) -> list[FlowResult | Passed]:
        used = self._used[Protocol.UDP]
        sent = {datagram[SPORT] for datagram in burst}
        self._forget_if(self._meets(not used.isdisjoint(sent)))
        if self.loader.pins:
            self.tap.run_on(0)
        try:
            ends = send_burst(self.tap, burst)
        except KeyError as e:
            raise MachineError(f"the node has no interface {e}") from None
        self._openers = None
        arrival_ports = {end[DPORT] for end in ends if end is not None}
        used |= arrival_ports
        used.update([datagram[DPORT] for datagram in burst])
        # A flow whose source port is the port at which another flow arrived may have met its connection.
        certain = [None if end is None or end[SPORT] in arrival_ports else end for end in ends]
        uncertain = [
            flow_of(d, self.tap.family) for d, end in zip(burst, certain, strict=True) if end is None
        ]
        if uncertain:
            self.tap.settle()
            if len(uncertain) > len(burst) // _MOSTLY:
                self._alone = _ALONE
            packets = [flow.first.packet for flow in uncertain]
            sent -= {packet.sport for packet in packets if self.loader.forget_one(self.tap, packet)}
        used |= sent
        alone = iter(uncertain)
        return [self._once(next(alone)) if end is None else end for end in certain]

    def _forget_run(self, run: Run) -> None:
        """Forget the connections of a run, apart from those that :meth:`_flow` has forgotten."""
        if self._crowded or not all(self.loader.forget_one(self.tap, packet) for packet in run.kept):
            self.loader.forget_connections(self.tap)

    def _record_connections(self, openers: tuple[Packet, ...]) -> None:
        """Record the connections of the last flow, which stay until another flow could meet them."""
        if self._openers is not None:
            self._openers = [*self._openers, *openers]
            if len(self._openers) > _FEW:
                self._openers = None

    def _forget_connections_met_by(self, flow: Flow) -> None:
        """Forget the connections that this flow could meet."""
        keys = [source_port(s.packet) for s in flow.steps if isinstance(s, Send)]
        self._forget_if(self._meets(any(port in self._used[proto] for proto, port in keys)))

    def _meets(self, by_its_port: bool) -> bool:
        """Return whether a flow could meet a connection, by its source port or by one that it gets."""
        return by_its_port or (self.loader.gives_ports and any(self._used.values()))

    def _forget_if(self, meet: bool) -> None:
        """Empty lists of addresses, and forget all connections if the next flow could ``meet`` one."""
        if self._filled is None or self._filled:
            self.loader.forget_filled_lists(self._filled)
            self._filled = frozenset()
        if meet or self._crowded:
            openers, self._openers = self._openers, []
            # To forget every connection, the kernel walks the table of the whole machine.
            if self._crowded or openers is None or not self.loader.forget_all(self.tap, openers):
                self.loader.forget_connections(self.tap)
            for ports in self._used.values():
                ports.clear()
            self._crowded = False

    def _flow(self, flow: Flow, runs: FlowRuns) -> Run:
        """Run a flow once."""
        running, waits = runs.begin(), False
        for number, step in enumerate(flow.steps, 1):
            if isinstance(step, Pause):
                self.tap.wait(step.seconds)
                continue
            turn = running.turn(step, number)
            if turn.emission is None:
                continue
            if waits:
                time.sleep(self.loader.gap)
            waits = self.loader.gap > 0
            running.react(turn, *self._exchange(turn))
        run, new = running.ended()
        if new:
            for packet in run.packets:
                self._remember(packet)
        for packet in run.translated:
            self._crowded |= not self.loader.forget_one(self.tap, packet)
        return run

    def _remember(self, packet: Packet) -> None:
        # A later connection meets this one if its source port is any port of this packet,
        # as sent or as it arrived.
        proto, port = source_port(packet)
        used = self._used[proto]
        used.add(port)
        if packet.dport is not None:
            used.add(packet.dport)

    def _exchange(self, turn: Turn) -> tuple[tuple[Sighting, ...], Observed | None]:
        """Send a packet; return everything that came out, and the outcome if it is not a known one."""
        emission, tap = turn.emission, self.tap
        assert emission is not None
        sent = emission.packet
        tap.listen(sent.proto)
        if sent.family is not tap.family:
            raise MachineError(f"{sent} is not a packet for rules of {tap.family.value}")
        if self.loader.pins:
            tap.run_on(sent.cpu)
        unrouted = tap.unrouted()
        if emission.entry is None:
            tap.originate(turn.frame, mark=sent.mark, uid=sent.uid, gid=sent.gid)
        else:
            try:
                tap.inject(emission.entry, turn.frame, source=sent.smac, destination=sent.dmac)
            except KeyError:
                raise MachineError(f"the node has no interface {emission.entry!r}") from None
        sightings = tuple(tap.drain())
        known = turn.reactions.get(sightings)
        if known is None:
            arrived = self._reader.has(turn.identity, sightings)
        else:
            arrived = known.observed.arrival is not None
        if not arrived or emission.entry is None:
            # A packet from the node to itself passes through the backlog of lo, and an answer may do so too.
            sightings += tuple(tap.settle())
            if (total := tap.unrouted()) > unrouted:
                unanswered = self._unrouted.record(sent.src, unrouted, total)
                sightings = sightings or unanswered
            known = turn.reactions.get(sightings)
        if known is not None:
            return sightings, None
        return sightings, observe(emission, turn.identity, sightings, self._reader)
