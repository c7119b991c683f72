"""Rules that distinguish connections by the client's port alone."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from typing import Final

from translate.ir import (
    Accept,
    Account,
    Action,
    AddTtl,
    Dnat,
    Drop,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    Interval,
    Jump,
    LimitMss,
    Log,
    Masquerade,
    NoTrack,
    Random,
    Recent,
    Redirect,
    Reject,
    RestoreMark,
    Return,
    Rule,
    Ruleset,
    SaveMark,
    SetConnmark,
    SetMark,
    SetTos,
    SetTtl,
    Snat,
    Test,
    flat,
)

__all__ = ["gives_source_ports", "port_boundaries", "ports_alike", "reads_source_ports"]

_OTHERS: Final = frozenset(
    {
        Field.SADDR,
        Field.DADDR,
        Field.L4PROTO,
        Field.DPORT,
        Field.ICMP_TYPE,
        Field.ICMP_CODE,
        Field.TCP_FLAGS,
        Field.TTL,
        Field.TOS,
        Field.MARK,
        Field.IIF,
        Field.OIF,
        Field.CT_STATE,
        Field.CT_STATUS,
        Field.CT_MARK,
        Field.CT_DIRECTION,
        Field.CT_ORIGINAL_SADDR,
        Field.CT_ORIGINAL_DADDR,
        Field.CT_ORIGINAL_DPORT,
        Field.FIB_SADDR_TYPE,
        Field.FIB_DADDR_TYPE,
        Field.FIB_SADDR_TYPE_IIF,
        Field.FIB_DADDR_TYPE_IIF,
        Field.FIB_SADDR_TYPE_OIF,
        Field.FIB_DADDR_TYPE_OIF,
        Field.IIF_GROUP,
        Field.OIF_GROUP,
        Field.PACKET_TYPE,
    }
)
"""The usual fields of a first packet whose values do not depend on its source port."""

_PORTS: Final = frozenset({Field.SPORT, Field.DPORT, Field.CT_ORIGINAL_SPORT, Field.CT_REPLY_DPORT})
"""Fields with the port of the client: in its own packets, or in the answers."""

_ACTIONS: Final = (
    Accept
    | AddTtl
    | Drop
    | FillChecksum
    | Goto
    | Jump
    | LimitMss
    | Log
    | Masquerade
    | NoTrack
    | Redirect
    | Reject
    | RestoreMark
    | Return
    | SaveMark
    | SetConnmark
    | SetMark
    | SetTos
    | SetTtl
)
"""Actions that do the same for every source port, but for that port itself."""


def reads_source_ports(ruleset: Ruleset) -> bool:
    """Return whether the outcome of a first packet may depend on its source port, or on its payload.

    It may with every test and action that is not known here, such as a hash of the connection's ports. NAT to
    a range of addresses chooses by such a hash (``find_best_ips_proto``).
    """
    return not all(
        _acts_the_same(rule) and all(map(_reads_none, flat(rule.tests))) for rule in ruleset.rules()
    )


def gives_source_ports(ruleset: Ruleset) -> bool:
    """Return whether a rule gives source ports to connections."""
    return any(
        isinstance(action, Snat | Masquerade) and action.ports.interval is not None
        for rule in ruleset.rules()
        for action in rule.actions
    )


def port_boundaries(ruleset: Ruleset) -> tuple[int, ...] | None:
    """Return the ports at which a test of a port, or the range of a source NAT, begins or has just ended.

    Connections are alike in all packets, but for the client's port, if no boundary is between their ports.
    None if that may depend on the port otherwise, or on the payload.
    """
    boundaries: set[int] = set()
    for rule in ruleset.rules():
        if not _acts_the_same(rule):
            return None
        for action in rule.actions:
            # A port in the range is kept (get_unique_tuple).
            if isinstance(action, Snat | Masquerade) and action.ports.interval is not None:
                boundaries.update(_ends(action.ports.interval))
        for test in flat(rule.tests):
            if isinstance(test, FieldTest) and test.field in _PORTS:
                if test.mask is not None:
                    return None
                for ports in test.values:
                    assert isinstance(ports, Interval)
                    boundaries.update(_ends(ports))
            elif not _reads_none(test):
                return None
    return tuple(sorted(boundaries))


def _ends(ports: Interval) -> tuple[int, int]:
    return ports.low, ports.high + 1


def ports_alike(port: int, boundaries: Sequence[int]) -> range:
    """Return the ports around one that no boundary separates from it; ``boundaries`` are in order."""
    place = bisect(boundaries, port)
    low = boundaries[place - 1] if place else 0
    high = boundaries[place] if place < len(boundaries) else 1 << 16
    return range(low, min(high, 1 << 16))


def _reads_none(test: Test) -> bool:
    match test:
        case FieldTest(field=field):
            return field in _OTHERS
        case Recent(key=key):
            return _OTHERS.issuperset(key)
        case _:
            return isinstance(test, Account | Random)


def _acts_the_same(rule: Rule) -> bool:
    return not rule.unknown and all(map(_is_the_same, rule.actions))


def _is_the_same(action: Action) -> bool:
    match action:
        case Dnat() | Snat():
            return action.addresses is None or action.addresses.size == 1
        case _:
            return isinstance(action, _ACTIONS)
