"""The instructions of nf_tables that load, compare and look up values; ``effects`` has the others.

Registers 1 to 4 have sixteen bytes each; 8 to 23 are the same bytes by fours (``nft_parse_register``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.lab.bytecode.effects import (
    Count,
    HandOver,
    Help,
    Log,
    Nat,
    NoTrack,
    ProxyHandshake,
    Reject,
    SendCopy,
    SetCt,
    SetCtZone,
    SetMeta,
    SetTcpOption,
    StorePayload,
    StripTcpOption,
    Take,
    TransparentProxy,
    UpdateSet,
)

PATH_MSS: Final = 1460
"""The largest TCP segment on the path of every packet."""

__all__ = [
    "PATH_MSS",
    "Bitwise",
    "Byteorder",
    "Compare",
    "Constant",
    "Decide",
    "Instruction",
    "LoadChunk",
    "LoadCt",
    "LoadExtension",
    "LoadFib",
    "LoadMeta",
    "LoadPayload",
    "LoadRoute",
    "LoadTcpOption",
    "LookUp",
    "NumberGenerator",
    "Range",
    "ShiftRight",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``accept``, ``drop``, ``return``, ``continue``, or ``jump`` and ``goto`` with the chain."""

    kind: str
    chain: str | None = None


@dataclass(frozen=True, slots=True)
class LoadMeta:
    """``meta``: the key as nft spells it."""

    key: str
    target: int


@dataclass(frozen=True, slots=True)
class LoadPayload:
    """``payload``: ``length`` bytes of a header (``link``, ``network``, ``transport``) from ``offset`` on."""

    base: str
    offset: int
    length: int
    target: int


@dataclass(frozen=True, slots=True)
class LoadCt:
    """``ct``: the key, and ``original`` or ``reply`` if it has a direction."""

    key: str
    direction: str | None
    target: int


@dataclass(frozen=True, slots=True)
class LoadFib:
    """``fib``: the key of the lookup (``saddr . iif``); ``result`` is ``type`` or ``oif present``."""

    flags: str
    result: str
    target: int


@dataclass(frozen=True, slots=True)
class NumberGenerator:
    """``numgen``: ``kind`` is ``random`` or ``inc``."""

    kind: str
    modulus: int
    offset: int
    target: int


@dataclass(frozen=True, slots=True)
class Constant:
    """Load a constant into a register (``immediate``)."""

    data: bytes
    target: int


@dataclass(frozen=True, slots=True)
class Decide:
    """Set the verdict (``immediate``)."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ShiftRight:
    """``target = source >> bits``, of one word (``nft_bitwise_eval_rshift``)."""

    source: int
    target: int
    bits: int


@dataclass(frozen=True, slots=True)
class Bitwise:
    """Set a register to ``(source & mask) ^ xor``."""

    source: int
    target: int
    mask: bytes
    xor: bytes


@dataclass(frozen=True, slots=True)
class Byteorder:
    """``hton`` and ``ntoh``, which do the same to each ``size`` bytes of ``length`` in all."""

    source: int
    target: int
    size: int
    length: int


@dataclass(frozen=True, slots=True)
class Compare:
    """``cmp``: ``operator`` is eq, neq, lt, lte, gt or gte, of bytes in order."""

    operator: str
    register: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Range:
    """``range``: an interval that includes both ends."""

    negated: bool
    register: int
    low: bytes
    high: bytes


@dataclass(frozen=True, slots=True)
class LookUp:
    """``lookup``: ``target`` is the register for the data of a map, 0 for a verdict, None for a set."""

    set: int
    register: int
    target: int | None
    negated: bool


@dataclass(frozen=True, slots=True)
class LoadExtension:
    """``exthdr`` of IPv6: bytes of the first extension header of this kind."""

    kind: int
    offset: int
    length: int
    target: int


@dataclass(frozen=True, slots=True)
class LoadTcpOption:
    """``tcp option``: bytes of the first option of this kind; with ``presence``, 1 if there is one, or 0."""

    kind: int
    offset: int
    length: int
    target: int
    presence: bool = False


@dataclass(frozen=True, slots=True)
class LoadChunk:
    """``sctp chunk``: 1 if the packet has a chunk of this type, or 0."""

    kind: int
    target: int


@dataclass(frozen=True, slots=True)
class LoadRoute:
    """``rt mtu``: the largest segment of the packet's path, which is :data:`PATH_MSS` here."""

    target: int


Instruction = (
    LoadMeta
    | LoadPayload
    | LoadCt
    | LoadFib
    | NumberGenerator
    | Constant
    | Decide
    | Bitwise
    | ShiftRight
    | Byteorder
    | Compare
    | Range
    | LookUp
    | UpdateSet
    | Count
    | Take
    | Help
    | SetMeta
    | SetCt
    | SetCtZone
    | LoadRoute
    | LoadExtension
    | LoadTcpOption
    | LoadChunk
    | StripTcpOption
    | TransparentProxy
    | SendCopy
    | ProxyHandshake
    | HandOver
    | SetTcpOption
    | StorePayload
    | Nat
    | Reject
    | Log
    | NoTrack
)
