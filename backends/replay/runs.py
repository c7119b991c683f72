"""The runs of one flow, of which most repeat an earlier one.

A flow with random outcomes runs hundreds of times, and takes one of a few paths each time. The packets of a
run depend only on those that came out before (:class:`~backends.model.conversation.Conversation`). So the
runs form a tree: each packet that was sent is a :class:`Turn`, and everything that came out after it leads to
the next one. A packet that was sent at this place of the tree before is not built again, and packets that
came out there before are not read again. All of them are sent, received and compared byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from backends.model.conversation import Conversation, Emission
from backends.model.flow import Again, Flow, IcmpError, Reply, Send
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet, Port
from backends.replay.observed import Observed
from backends.testbed.tapnode import Sighting
from backends.wire.frames import Identity, build, identity
from translate.dataclass import dataclass, field

__all__ = ["FlowRuns", "Reaction", "Run", "RunningFlow", "Turn", "source_port"]

_UNSENT: Final = Observed(Outcome(verdict=Verdict.UNSENT), None, ())
_MOST: Final = 256
"""The number of reactions to a packet that are kept: a random source port makes each a new one."""

_Sent = Send | Reply | Again | IcmpError


@dataclass(slots=True, eq=False)
class Turn:
    """A packet that is sent at one place of the tree, or None if there is nothing to answer.

    ``step`` is the step of the flow, and ``number`` its place, from 1.
    """

    step: _Sent
    number: int
    emission: Emission | None
    frame: bytes = b""
    identity: Identity = ()
    reactions: dict[tuple[Sighting, ...], Reaction] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Reaction:
    """The outcome of a packet, and what follows."""

    observed: Observed
    following: Turn | None = None
    run: Run | None = None
    """The whole run, if one has ended here before."""


@dataclass(frozen=True, slots=True)
class Run:
    """The outcomes and notes of all packets of a run, and the packets that were sent and that arrived.

    ``beginnings`` are the packets that may have begun a connection, one of each connection. ``translated``
    are those that began one and came out with another source port, and ``kept`` the beginnings of all other
    connections.
    """

    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...]
    packets: tuple[Packet, ...]
    beginnings: tuple[Packet, ...]
    translated: tuple[Packet, ...]
    kept: tuple[Packet, ...]


class FlowRuns:
    """The known runs of one flow."""

    def __init__(self, flow: Flow) -> None:
        self._conversation = Conversation(flow)
        self._root = Reaction(_UNSENT)

    def begin(self) -> RunningFlow:
        """Return a new run at its beginning."""
        return RunningFlow(self._root, self._conversation)


class RunningFlow:
    """One run on its way through the tree."""

    def __init__(self, root: Reaction, flow: Conversation) -> None:
        self._flow = flow
        self._at = root
        self._taken: list[tuple[Turn, Reaction]] = []
        self._conversation: Conversation | None = None
        """The conversation so far, since the first packet that is new at its place of the tree."""

    def turn(self, step: _Sent, number: int) -> Turn:
        """Return the next packet, that of a step; call :meth:`react` if it is sent."""
        turn = self._at.following
        if turn is None:
            if self._conversation is None:
                self._conversation = self._repeated()
            turn = self._at.following = _turn(step, number, self._conversation.emit(step))
        if turn.emission is None:
            self._follow(turn, turn.reactions.setdefault((), Reaction(_UNSENT)))
        return turn

    def react(self, turn: Turn, sightings: tuple[Sighting, ...], observed: Observed | None) -> None:
        """Continue behind the packets that came out; ``observed`` is their outcome if they are new."""
        reaction = turn.reactions.get(sightings)
        if reaction is None:
            assert observed is not None
            reaction = Reaction(observed)
            if len(turn.reactions) < _MOST:
                turn.reactions[sightings] = reaction
        if self._conversation is not None and reaction.observed.arrival is not None:
            self._conversation.arrived(reaction.observed.arrival)
        self._follow(turn, reaction)

    def ended(self) -> tuple[Run, bool]:
        """Return the whole run, and whether it is new."""
        run = self._at.run
        if run is not None:
            return run, False
        run = self._at.run = _run(self._taken)
        return run, True

    def _follow(self, turn: Turn, reaction: Reaction) -> None:
        self._taken.append((turn, reaction))
        self._at = reaction

    def _repeated(self) -> Conversation:
        """Return the conversation of this run so far."""
        conversation = self._flow.afresh()
        for turn, reaction in self._taken:
            conversation.emit(turn.step)
            if reaction.observed.arrival is not None:
                conversation.arrived(reaction.observed.arrival)
        return conversation


def _turn(step: _Sent, number: int, emission: Emission | None) -> Turn:
    if emission is None:
        return Turn(step, number, None)
    return Turn(step, number, emission, build(emission.packet), identity(emission.packet))


def _run(taken: Iterable[tuple[Turn, Reaction]]) -> Run:
    outcomes: list[Outcome] = []
    notes: list[str] = []
    sent: list[Packet] = []
    arrived: list[Packet] = []
    translated: list[Packet] = []
    for turn, reaction in taken:
        observed = reaction.observed
        outcomes.append(observed.outcome)
        notes.extend(f"step {turn.number}: {note}" for note in observed.notes)
        if turn.emission is None:
            continue
        packet = turn.emission.packet
        sent.append(packet)
        if observed.arrival is not None:
            arrived.append(observed.arrival.packet)
            if isinstance(turn.step, Send) and source_port(observed.arrival.packet) != source_port(packet):
                translated.append(packet)
    beginnings = {_connection(packet): packet for packet in sent if packet.quoted is None}
    others = beginnings.keys() - map(_connection, translated)
    return Run(
        tuple(outcomes),
        tuple(notes),
        (*sent, *arrived),
        tuple(beginnings.values()),
        tuple(translated),
        tuple(packet for key, packet in beginnings.items() if key in others),
    )


def _connection(packet: Packet) -> tuple[object, ...]:
    return packet.src, packet.dst, *source_port(packet), packet.dport


def source_port(packet: Packet) -> tuple[int, Port | None]:
    """Return the protocol of a packet, and its source port or ICMP identifier."""
    return packet.proto, packet.icmp_id if packet.is_icmp else packet.sport
