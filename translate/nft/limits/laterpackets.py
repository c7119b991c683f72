"""Later packets of connections in a flowtable, and the tests that always or never hold for them.

A flowtable takes over a connection at a packet of the state ESTABLISHED in FORWARD. From then on it forwards
the packets of both directions from its ingress hook, before PREROUTING (``nf_flow_offload_ip_hook``). It
leaves these packets to the rules: fragments, packets with IP options, with a TTL of at most 1 or larger than
the MTU, and segments with FIN or RST. All others skip the hooks PREROUTING, FORWARD and POSTROUTING, and with
them conntrack. So nobody has checked whether conntrack would call them INVALID: outside of the TCP window, or
with a wrong checksum.

A :class:`LaterPacket` has the possible values of fields; of all other fields nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from itertools import combinations
from types import MappingProxyType
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import (
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Field,
    FieldTest,
    Hook,
    Interval,
    Name,
    Protocol,
    TableName,
    TcpFlag,
    Test,
    Value,
)

__all__ = ["LaterPacket", "Truth", "all_hold", "holds", "later_packets"]


class Truth(Enum):
    """The results that a test of a packet can have."""

    NEVER = "never"
    MAYBE = "maybe"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterPacket:
    """The packets of one ``state`` at one table of a hook, with the possible values of some fields.

    ``absent`` are the fields that they do not have.
    """

    state: ConnectionState
    numbers: Mapping[Field, frozenset[int]]
    names: Mapping[Field, frozenset[str]]
    absent: frozenset[Field] = field(default=frozenset())


_NO_NAME: Final = frozenset({""})
_CONNECTION_FIELDS: Final = frozenset(f for f in Field if f.is_connection)
_HEADER: Final[Mapping[Field, frozenset[int]]] = MappingProxyType(
    {
        Field.L4PROTO: frozenset({int(Protocol.TCP), int(Protocol.UDP)}),
        Field.FRAGMENT: frozenset({0}),
        Field.TTL: frozenset(range(2, 256)),
        Field.SOCKET: frozenset({0}),
    }
)
_UNKNOWN_STATUS: Final = (
    ConnectionStatus.EXPECTED,
    ConnectionStatus.ASSURED,
    ConnectionStatus.SNAT,
    ConnectionStatus.DNAT,
)
_STATUS: Final = frozenset(
    int(ConnectionStatus.CONFIRMED | ConnectionStatus.SEEN_REPLY) | sum(map(int, some))
    for count in range(len(_UNKNOWN_STATUS) + 1)
    for some in combinations(_UNKNOWN_STATUS, count)
)
"""The statuses that a connection in a flowtable can have, as far as rules can test them."""


def later_packets(
    hook: Hook, table: TableName, devices: frozenset[str], *, unchecked: bool
) -> tuple[LaterPacket, ...]:
    """Return the kinds of packets that do not reach a table at a hook, because a flowtable forwards them.

    ``devices`` are those of the flowtable. ``unchecked`` leaves out the packets that conntrack would not
    accept as data of the connection: those that are INVALID, and segments with SYN.
    """
    numbers = dict(_HEADER)
    names = {
        Field.IIF: _NO_NAME if hook is Hook.POSTROUTING else devices,
        Field.OIF: _NO_NAME if hook is Hook.PREROUTING else devices,
    }
    refused = TcpFlag.FIN | TcpFlag.RST | (TcpFlag.SYN if unchecked else TcpFlag(0))
    numbers[Field.TCP_FLAGS] = frozenset(flags for flags in range(256) if not flags & refused)
    established = LaterPacket(state=ConnectionState.ESTABLISHED, numbers=numbers, names=names)
    if table is TableName.RAW:  # before conntrack: nothing is known of the connection
        return (established,)
    with_conntrack = {
        **numbers,
        Field.CT_STATE: frozenset({int(ConnectionState.ESTABLISHED)}),
        Field.CT_STATUS: _STATUS,
        Field.CT_PROTO: numbers[Field.L4PROTO],
    }
    established = LaterPacket(state=ConnectionState.ESTABLISHED, numbers=with_conntrack, names=names)
    if unchecked:
        return (established,)
    invalid = LaterPacket(
        state=ConnectionState.INVALID,
        numbers={**numbers, Field.CT_STATE: frozenset({int(ConnectionState.INVALID)})},
        names=names,
        absent=_CONNECTION_FIELDS,
    )
    return established, invalid


def all_hold(tests: Iterable[Test], packet: LaterPacket) -> Truth:
    """Return whether all tests together always, never or perhaps hold."""
    result = Truth.ALWAYS
    for test in tests:
        match holds(test, packet):
            case Truth.NEVER:
                return Truth.NEVER
            case Truth.MAYBE:
                result = Truth.MAYBE
            case Truth.ALWAYS:
                pass
    return result


def holds(test: Test, packet: LaterPacket) -> Truth:
    """Return whether a test always, never or perhaps holds."""
    match test:
        case FieldTest():
            return _field_holds(test, packet)
        case AnyOf(tests=tests, negated=negated):
            parts = {_field_holds(part, packet) for part in tests}
            if Truth.ALWAYS in parts:
                return Truth.NEVER if negated else Truth.ALWAYS
            if parts <= {Truth.NEVER}:
                return Truth.ALWAYS if negated else Truth.NEVER
            return Truth.MAYBE
        case _:
            return Truth.MAYBE


def _field_holds(test: FieldTest, packet: LaterPacket) -> Truth:
    """Return whether a test of a field always, never or perhaps holds; never, if the field is absent."""
    if test.field in packet.absent:
        return Truth.NEVER
    results: set[bool]
    if (names := packet.names.get(test.field)) is not None:
        results = {any(_is_named(value, name) for value in test.values) for name in names}
    elif (numbers := packet.numbers.get(test.field)) is not None:
        # CT_STATUS has bits that no rule can test, so that only a part of it is known.
        if test.field is Field.CT_STATUS and test.mask is None:
            return Truth.MAYBE
        mask = -1 if test.mask is None else test.mask
        results = {any(_contains(value, number & mask) for value in test.values) for number in numbers}
    else:
        return Truth.MAYBE
    if len(results) != 1:
        return Truth.MAYBE
    # TCP flags are absent from UDP, so that a test of them may fail whatever its values are.
    if results != {test.negated}:
        return Truth.MAYBE if test.field is Field.TCP_FLAGS else Truth.ALWAYS
    return Truth.NEVER


def _is_named(value: Value, name: str) -> bool:
    return isinstance(value, Name) and value.matches(name)


def _contains(value: Value, number: int) -> bool:
    return isinstance(value, Interval) and number in value
