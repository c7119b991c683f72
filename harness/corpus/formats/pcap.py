"""Flows from packet captures, and captures from flows.

A capture is imported as conversations: packets of one 5-tuple in both directions are one flow. The first
captured packet begins the flow. Later packets of its sender become :class:`Again`, packets of the other side
:class:`Reply`, an ICMP error about one of its packets :class:`IcmpError`, and a new SYN another
:class:`Send`. Payloads and TCP flags are kept if a flow can express them; sequence numbers and pauses are
not. Other frames (fragments, truncated frames, frames that are not IP, IPv6 neighbour discovery) are left out
and reported by number.

An export writes the packets that flows send, or the packets that leave the node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from backends.model.conversation import Arrival, Conversation
from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.node import Node
from backends.model.outcome import FlowResult, Outcome, Verdict
from backends.model.packet import Icmp6Type, IcmpType, Packet, Port, PortClass
from backends.wire.frames import build
from backends.wire.parsing import FrameError, Parsed, parse
from harness.corpus.formats.capturefile import read_capture, write_capture
from harness.corpus.formats.entry import entry_of
from harness.corpus.formats.packets import protocol_name
from translate.dataclass import dataclass, field, replace
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Protocol, TcpFlag

__all__ = ["Imported", "export_capture", "import_capture", "import_packets"]

_LINK_MESSAGES: Final = frozenset({130, 131, 132, 133, 134, 135, 136, 137, 143})
"""Multicast listener and neighbour discovery (RFC 2710, RFC 3810, RFC 4861)."""
_MOST_NUMBERS: Final = 20

_End = tuple[int, Port | None]


@dataclass(frozen=True, slots=True)
class Imported:
    """The flows of a capture, and the numbers of the frames left out, by reason."""

    flows: tuple[Flow, ...]
    left_out: dict[str, tuple[int, ...]]

    def left_out_lines(self) -> tuple[str, ...]:
        """Return one line per reason, with the frames left out for it."""
        return tuple(
            f"{len(numbers)} {'frame' if len(numbers) == 1 else 'frames'} ({_numbers(numbers)}): {why}"
            for why, numbers in self.left_out.items()
        )


def _numbers(numbers: tuple[int, ...]) -> str:
    """Return ascending numbers as text, with runs as ranges; only the first if there are many."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    text = [str(first) if first == last else f"{first}-{last}" for first, last in runs[:_MOST_NUMBERS]]
    return ", ".join([*text, "…"] if len(runs) > _MOST_NUMBERS else text)


def import_capture(path: Path, *, node: Node, family: Family | None = None) -> Imported:
    """Return the flows of a capture, as :func:`import_packets`; ParseError also when it has none."""
    imported = import_packets(path, node=node, family=family)
    if not imported.flows:
        reasons = "; ".join(imported.left_out_lines()) or "it is empty"
        raise ParseError((Diagnostic(Origin(str(path)), f"this capture contains no flow ({reasons})"),))
    return imported


@dataclass(slots=True)
class _Conversation:
    """A flow while it is being put together."""

    id: str
    source: str
    client: _End
    steps: list[Step] = field(default_factory=list)


def import_packets(path: Path, *, node: Node, family: Family | None = None) -> Imported:
    """Return the flows of a capture (only those of ``family``, if given) and the frames left out.

    Interfaces are chosen by the reverse route of each flow's first source. Raises ParseError when the file is
    not a capture, or when no route leads to a source.
    """
    left_out: dict[str, tuple[int, ...]] = {}

    def leave_out(number: int, why: str) -> None:
        left_out[why] = (*left_out.get(why, ()), number)

    talks: dict[object, _Conversation] = {}
    problems: list[Diagnostic] = []
    for frame in read_capture(path):
        if frame.data is None:
            leave_out(frame.number, frame.why)
            continue
        try:
            parsed = parse(frame.data)
        except FrameError:
            leave_out(frame.number, "not a whole IP header")
            continue
        why = _unfit(parsed, family)
        if why is not None:
            leave_out(frame.number, why)
            continue
        # Captures are often taken before the network card fills in checksums, so the checksum on the wire may
        # have been right.
        packet = parsed.packet
        key = _key(packet)
        talk = talks.get(key)
        if talk is not None:
            talk.steps.append(_next(talk, packet))
            continue
        place = f"{path}:{frame.number}"
        try:
            entry = entry_of(node, packet.family, packet.src)
        except ValueError as e:
            problems.append(Diagnostic(Origin(str(path), frame.number), f"frame {frame.number}: {e}"))
            continue
        name = f"{protocol_name(packet.proto)}-{len(talks) + 1}"
        first = Send(packet=replace(packet, seq=0, ack=0), entry=entry)
        talks[key] = _Conversation(name, place, _client(packet), [first])
    if problems:
        raise ParseError(tuple(problems))
    flows = tuple(Flow(id=t.id, steps=tuple(t.steps), source=t.source) for t in talks.values())
    return Imported(flows, dict(left_out))


def _unfit(parsed: Parsed, family: Family | None) -> str | None:
    """Return why a packet cannot be part of a flow."""
    packet = parsed.packet
    if family not in (None, packet.family):
        return f"IPv{packet.family.version}, another address family than the rules'"
    if packet.fragment is not None:
        return "a fragment"
    if any("length" in fault or "cut short" in fault for fault in parsed.faults if "quoted" not in fault):
        return "not a whole packet"
    if packet.family is Family.IP6 and packet.is_icmp and packet.icmp_type in _LINK_MESSAGES:
        return "neighbour or listener discovery"
    return None


def _client(packet: Packet) -> _End:
    return packet.src, packet.icmp_id if packet.is_icmp else packet.sport


def _key(packet: Packet) -> object:
    """Return the key of a packet's conversation; ICMP errors have the key of the packet that they quote."""
    if packet.quoted is not None:
        return _key(packet.quoted)
    if packet.is_icmp:
        ends = frozenset({packet.src, packet.dst})
        return packet.proto, ends, packet.icmp_id, (packet.icmp_type or 0) if packet.icmp_id is None else None
    return packet.proto, frozenset({(packet.src, packet.sport), (packet.dst, packet.dport)})


def _next(talk: _Conversation, packet: Packet) -> Step:
    first = talk.steps[0]
    assert isinstance(first, Send)
    if packet.quoted is not None:
        quoted_dst = packet.quoted.dst
        source = None if packet.src == quoted_dst else packet.src
        return IcmpError(type=packet.icmp_type or 0, code=packet.icmp_code or 0, source=source)
    tcp = packet.proto == Protocol.TCP
    same = packet.src == talk.client[0]
    if packet.has_ports:
        same = _client(packet) == talk.client
    elif packet.is_icmp:
        answer = IcmpType.ECHO_REPLY if packet.family is Family.IP else Icmp6Type.ECHO_REPLY
        same = packet.icmp_type != answer
    if same and tcp and packet.flags == TcpFlag.SYN:
        return Send(packet=replace(packet, seq=0, ack=0), entry=first.entry)
    flags = packet.flags if tcp else None
    return Again(flags=flags) if same else Reply(flags=flags)


def export_capture(path: Path, flows: Iterable[Flow], results: Iterable[FlowResult] | None = None) -> int:
    """Write flows as a capture, a second apart, and return how many packets were written.

    Without ``results``, the packets are as their senders send them, as if the node changed
    nothing. With them (one per flow), they are as they left the node: on the likeliest branch of the flow,
    with the lowest port where the kernel picks one.
    """
    written = 0

    def packets() -> Iterator[tuple[float, bytes]]:
        nonlocal written
        outcomes = iter(results) if results is not None else None
        for number, flow in enumerate(flows):
            result = None if outcomes is None else next(outcomes)
            for step, packet in enumerate(_packets(flow, result)):
                written += 1
                yield number + min(step, 999) / 1000, build(packet)

    write_capture(path, packets())
    return written


def _packets(flow: Flow, result: FlowResult | None) -> Iterator[Packet]:
    conversation = Conversation(flow)
    outcomes: Iterator[Outcome] | None = None
    if result is not None:
        outcomes = iter(max(result.branches, key=lambda b: b.probability).outcomes)
    for step in flow.steps:
        if isinstance(step, Pause):
            continue
        emission = conversation.emit(step)
        outcome = None if outcomes is None else next(outcomes)
        if emission is None:
            continue
        if outcomes is None:
            conversation.arrived(Arrival(emission.packet, None))
            yield emission.packet
        elif outcome is not None and outcome.verdict in (Verdict.FORWARD, Verdict.LOCAL):
            packet = _as_it_left(emission.packet, outcome)
            conversation.arrived(Arrival(packet, outcome.out))
            yield packet


def _number(port: Port | None) -> Port | None:
    return port.low if isinstance(port, PortClass) else port


def _as_it_left(packet: Packet, outcome: Outcome) -> Packet:
    assert outcome.src is not None
    assert outcome.dst is not None
    ports: dict[str, Any] = {"sport": _number(outcome.sport), "dport": _number(outcome.dport)}
    if packet.is_icmp:
        ports = {"icmp_id": _number(outcome.sport)}
    quoted = packet.quoted
    if quoted is not None and outcome.quoted is not None:
        inner = outcome.quoted
        of_query: dict[str, Any] = {"icmp_id": _number(inner.sport)}
        of_ports = {"sport": _number(inner.sport), "dport": _number(inner.dport)}
        changed = of_query if quoted.is_icmp else of_ports
        quoted = replace(replace(quoted, **changed), src=inner.src, dst=inner.dst)
        ports = {"quoted": quoted}
    ttl = packet.ttl if outcome.ttl is None else outcome.ttl
    return replace(packet, src=outcome.src, dst=outcome.dst, ttl=ttl, **ports)
