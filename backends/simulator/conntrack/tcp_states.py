"""The TCP states of conntrack: the transition table, and valid flags.

All of it is from nf_conntrack_proto_tcp.c of Linux 6.1 and later.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from backends.model.packet import Packet
from translate.ir import TcpFlag

__all__ = ["TRANSITIONS", "TcpIndex", "TcpState", "tcp_index", "valid_flags"]


class TcpState(IntEnum):
    """The TCP states of conntrack (``enum tcp_conntrack``)."""

    NONE = 0
    SYN_SENT = 1
    SYN_RECV = 2
    ESTABLISHED = 3
    FIN_WAIT = 4
    CLOSE_WAIT = 5
    LAST_ACK = 6
    TIME_WAIT = 7
    CLOSE = 8
    SYN_SENT2 = 9
    INVALID = 10
    IGNORE = 11


class TcpIndex(IntEnum):
    """The kinds of segments in the transition table (``enum tcp_bit_set``)."""

    SYN = 0
    SYNACK = 1
    FIN = 2
    ACK = 3
    RST = 4
    NONE = 5


_LETTERS: Final = {
    "SS": TcpState.SYN_SENT,
    "SR": TcpState.SYN_RECV,
    "ES": TcpState.ESTABLISHED,
    "FW": TcpState.FIN_WAIT,
    "CW": TcpState.CLOSE_WAIT,
    "LA": TcpState.LAST_ACK,
    "TW": TcpState.TIME_WAIT,
    "CL": TcpState.CLOSE,
    "S2": TcpState.SYN_SENT2,
    "IV": TcpState.INVALID,
    "IG": TcpState.IGNORE,
}


def _rows(*rows: str) -> tuple[tuple[TcpState, ...], ...]:
    return tuple(tuple(_LETTERS[cell] for cell in row.split()) for row in rows)


TRANSITIONS: Final = (
    _rows(
        "SS SS IG IG IG IG IG SS SS S2",
        "IV IV SR IV IV IV IV IV IV SR",
        "IV IV FW FW LA LA LA TW CL IV",
        "ES IV ES ES CW CW TW TW CL IV",
        "IV CL CL CL CL CL CL CL CL CL",
        "IV IV IV IV IV IV IV IV IV IV",
    ),
    _rows(
        "IV S2 IV IV IV IV IV SS IV S2",
        "IV SR IG IG IG IG IG IG IG SR",
        "IV IV FW FW LA LA LA TW CL IV",
        "IV IG SR ES CW CW TW TW CL IG",
        "IV CL CL CL CL CL CL CL CL CL",
        "IV IV IV IV IV IV IV IV IV IV",
    ),
)
"""The next state by direction, TcpIndex and present state (``tcp_conntracks``)."""

_F = TcpFlag
_VALID: Final = frozenset(
    {
        _F.SYN,
        _F.SYN | _F.URG,
        _F.SYN | _F.ACK,
        _F.RST,
        _F.RST | _F.ACK,
        _F.FIN | _F.ACK,
        _F.FIN | _F.ACK | _F.URG,
        _F.ACK,
        _F.ACK | _F.URG,
    }
)


_ALWAYS_VALID: Final = _F.PSH | _F.ECE | _F.CWR


def _index(flags: int) -> TcpIndex:
    if flags & TcpFlag.RST:
        return TcpIndex.RST
    if flags & TcpFlag.SYN:
        return TcpIndex.SYNACK if flags & TcpFlag.ACK else TcpIndex.SYN
    if flags & TcpFlag.FIN:
        return TcpIndex.FIN
    return TcpIndex.ACK if flags & TcpFlag.ACK else TcpIndex.NONE


# By the flags' byte: Python's operators on enumerations take ten times as long as a subscript.
_VALIDITY: Final = tuple(n & ~_ALWAYS_VALID in _VALID for n in range(0x100))
_INDEXES: Final = tuple(map(_index, range(0x100)))


def valid_flags(flags: TcpFlag) -> bool:
    """Return whether a segment may have these flags (``tcp_error``: PSH, ECE and CWR always may)."""
    return _VALIDITY[flags]


def tcp_index(packet: Packet) -> TcpIndex:
    """Return the row of a segment (``get_conntrack_index``)."""
    return _INDEXES[packet.flags]
