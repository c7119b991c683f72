"""Rules that distinguish connections by their source port alone."""

from __future__ import annotations

from typing import Final

from translate.ir import (
    Accept,
    Action,
    AddTtl,
    Dnat,
    Drop,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
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
    flat,
)

__all__ = ["reads_source_ports"]

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
    }
)
"""The usual fields whose values do not depend on a source port."""

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
    """Return whether the outcome of a packet may depend on its source port, or on its payload.

    It may with every test and action that is not known here, such as a hash of the connection's ports. NAT to
    a range of addresses chooses by such a hash (``find_best_ips_proto``).
    """
    return not all(map(_reads_none, ruleset.rules()))


def _reads_none(rule: Rule) -> bool:
    return (
        not rule.unknown
        and all(map(_is_the_same, rule.actions))
        and all(
            (isinstance(test, FieldTest) and test.field in _OTHERS)
            or isinstance(test, Random)
            or (isinstance(test, Recent) and _OTHERS.issuperset(test.key))
            for test in flat(rule.tests)
        )
    )


def _is_the_same(action: Action) -> bool:
    match action:
        case Dnat() | Snat():
            return action.addresses is None or action.addresses.size == 1
        case _:
            return isinstance(action, _ACTIONS)
