"""Flows and outcomes as plain tuples and dictionaries, for the pipe between the two processes.

Pickle calls Python code for every frozen, slotted dataclass, which costs about as much as the packet's path
through the kernel; ``marshal`` writes plain values many times faster. Both ends are the same interpreter and
the same files, so the format need not be stable. A packet and an outcome are sent as their fields by name, so
a new field needs no change here; ``marshal`` raises ValueError for a type that is not plain.

Datagrams that are sent once, and their outcomes, are tuples; everything else is a list. This distinguishes
the two.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final, assert_never

from backends.model.flow import Again, Flow, IcmpError, Pause, Repeated, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Fragment, Packet, Routing
from backends.wire.datagrams import Datagram, Passed, result_of, to_datagram
from translate.dataclass import values_by_field
from translate.ir import Family, TcpFlag

__all__ = ["pack_flows", "pack_results", "unpack_flows", "unpack_results"]

_FLAGS: Final = tuple(TcpFlag(n) for n in range(256))
_FAMILIES: Final = {f.value: f for f in Family}
_VERDICTS: Final = {v.value: v for v in Verdict}


def pack_flows(flows: Iterable[Flow | Repeated], family: Family) -> bytes:
    """Return the flows as bytes for a node of ``family``, without their descriptions (``why``)."""
    return marshal.dumps([_from_flow(flow, family) for flow in flows])


def unpack_flows(data: bytes) -> list[Flow | Repeated | Datagram]:
    """Return the flows of :func:`pack_flows`; datagrams remain tuples."""
    return [packed if type(packed) is tuple else _to_flow(*packed) for packed in marshal.loads(data)]


def _from_flow(request: Flow | Repeated, family: Family) -> list[Any] | Datagram:
    if isinstance(request, Repeated):
        flow = request.flow
        ports = (request.ports.start, request.ports.stop)
        how = (request.lists, request.watched, ports, request.filled)
        return [flow.id, [_from_step(s) for s in flow.steps], request.times, how]
    return to_datagram(request, family) or [request.id, [_from_step(s) for s in request.steps], 0, ()]


def _to_flow(name: str, steps: list[tuple[Any, ...]], times: int, how: tuple[Any, ...]) -> Flow | Repeated:
    flow = Flow(id=name, steps=tuple([_to_step(s) for s in steps]))
    if not times:
        return flow
    lists, watched, ports, filled = how
    return Repeated(flow, times, lists, watched, range(*ports), filled)


def pack_results(results: Iterable[FlowResult | Passed]) -> bytes:
    """Return the results of a kernel backend as bytes."""
    return marshal.dumps([_from_result(r) if isinstance(r, FlowResult) else r for r in results])


def unpack_results(data: bytes) -> list[FlowResult]:
    """Return the results of :func:`pack_results`."""
    return [
        result_of(packed) if type(packed) is tuple else _to_result(*packed) for packed in marshal.loads(data)
    ]


def _from_result(result: FlowResult) -> list[Any]:
    branches = [
        (int(branch.probability * result.runs), [_from_outcome(o) for o in branch.outcomes])
        for branch in result.branches
    ]
    rarest, flags = result.rarest.as_integer_ratio(), (result.lists, result.dependent, result.settled)
    about = (result.runs, rarest, flags, result.seconds)
    return [result.flow_id, branches, result.notes, *about]


def _to_result(
    flow_id: str,
    counted: list[tuple[int, list[dict[str, Any]]]],
    notes: tuple[str, ...],
    runs: int,
    rarest: tuple[int, int],
    flags: tuple[bool, bool, bool],
    seconds: float,
) -> FlowResult:
    branches = tuple(
        OutcomeBranch(Fraction(count, runs), tuple(map(_to_outcome, outcomes))) for count, outcomes in counted
    )
    lists, dependent, settled = flags
    return FlowResult(
        flow_id,
        branches,
        notes,
        runs,
        rarest=Fraction(*rarest),
        lists=lists,
        dependent=dependent,
        settled=settled,
        seconds=seconds,
    )


def _from_step(step: Step) -> tuple[Any, ...]:
    match step:
        case Send(packet=packet, entry=entry):
            return ("send", _from_packet(packet), entry)
        case Reply(flags=flags):
            return ("reply", None if flags is None else int(flags))
        case Again(flags=flags):
            return ("again", None if flags is None else int(flags))
        case IcmpError(type=kind, code=code, source=source):
            return ("error", kind, code, source)
        case Pause(seconds=seconds):
            return ("pause", seconds)
        case _:
            assert_never(step)


def _to_step(plain: tuple[Any, ...]) -> Step:
    match plain:
        case ("send", packet, entry):
            return Send(packet=_to_packet(packet), entry=entry)
        case ("reply", flags):
            return Reply(flags=None if flags is None else TcpFlag(flags))
        case ("again", flags):
            return Again(flags=None if flags is None else TcpFlag(flags))
        case ("error", kind, code, source):
            return IcmpError(type=kind, code=code, source=source)
        case ("pause", seconds):
            return Pause(seconds=seconds)
    raise ValueError(f"no step: {plain!r}")


def _from_packet(packet: Packet) -> dict[str, Any]:
    plain = values_by_field(packet)
    plain["family"], plain["flags"] = packet.family.value, int(packet.flags)
    plain["proto"] = int(packet.proto)
    if packet.quoted is not None:
        plain["quoted"] = _from_packet(packet.quoted)
    if packet.routing is not None:
        plain["routing"] = tuple(packet.routing)
    if packet.fragment is not None:
        plain["fragment"] = tuple(packet.fragment)
    return plain


def _to_packet(plain: dict[str, Any]) -> Packet:
    plain["family"], plain["flags"] = _FAMILIES[plain["family"]], _FLAGS[plain["flags"]]
    if plain["quoted"] is not None:
        plain["quoted"] = _to_packet(plain["quoted"])
    if plain["routing"] is not None:
        plain["routing"] = Routing(*plain["routing"])
    if plain["fragment"] is not None:
        plain["fragment"] = Fragment(*plain["fragment"])
    return Packet(**plain)


def _from_outcome(outcome: Outcome) -> dict[str, Any]:
    plain = values_by_field(outcome)
    plain["verdict"] = outcome.verdict.value
    if outcome.quoted is not None:
        quoted = outcome.quoted
        plain["quoted"] = (quoted.src, quoted.dst, quoted.sport, quoted.dport)
    return plain


def _to_outcome(plain: dict[str, Any]) -> Outcome:
    plain["verdict"] = _VERDICTS[plain["verdict"]]
    if plain["quoted"] is not None:
        plain["quoted"] = QuotedTuple(*plain["quoted"])
    return Outcome(**plain)
