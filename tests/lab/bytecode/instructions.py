"""The instructions of nf_tables, from the attributes in which nft sends them.

The numbers are those of ``linux/netfilter/nf_tables.h``, the kernel's interface, which does not change with
nft. Registers 1 to 4 have sixteen bytes each; 8 to 23 are the same bytes by fours (``nft_parse_register``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.lab.bytecode.netlink import Attributes, attributes

__all__ = [
    "PATH_MSS",
    "Bitwise",
    "Byteorder",
    "Compare",
    "Constant",
    "Count",
    "Decide",
    "HandOver",
    "Help",
    "Instruction",
    "LoadCt",
    "LoadExtension",
    "LoadFib",
    "LoadMeta",
    "LoadPayload",
    "LoadRoute",
    "Log",
    "LookUp",
    "Nat",
    "NoTrack",
    "NumberGenerator",
    "Range",
    "Reject",
    "SetCtMark",
    "SetCtZone",
    "SetMeta",
    "SetTcpOption",
    "StorePayload",
    "StripTcpOption",
    "Take",
    "TransparentProxy",
    "UpdateSet",
    "Verdict",
    "data_of",
    "instruction",
    "number",
    "text",
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
class StorePayload:
    """``payload set``: the same bytes, from a register. ``summed``: the checksum of IPv4 is updated."""

    base: str
    offset: int
    length: int
    register: int
    summed: bool


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
    """``immediate`` of data."""

    data: bytes
    target: int


@dataclass(frozen=True, slots=True)
class Decide:
    """``immediate`` of a verdict."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Bitwise:
    """``target = (source & mask) ^ xor``."""

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
class UpdateSet:
    """``dynset``: ``operation`` is add, update or delete.

    ``over`` is True if the limit of the element holds above it, False if below, None without a limit.
    ``limit`` is the number of connections in a limit of these.
    """

    operation: str
    set: int
    register: int
    over: bool | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """``objref`` to a named counter."""

    name: str


@dataclass(frozen=True, slots=True)
class Take:
    """``objref`` to a named limit or quota."""

    name: str


@dataclass(frozen=True, slots=True)
class Help:
    """``objref`` to a named helper of conntrack."""

    name: str


@dataclass(frozen=True, slots=True)
class SetMeta:
    """``meta KEY set``: the key as nft spells it."""

    key: str
    register: int


@dataclass(frozen=True, slots=True)
class SetCtMark:
    """``ct mark set``."""

    register: int


@dataclass(frozen=True, slots=True)
class TransparentProxy:
    """``tproxy``, which always finds a socket here: the registers of its address and port, if given."""

    address: int | None
    port: int | None


@dataclass(frozen=True, slots=True)
class HandOver:
    """``queue``: the first queue, the number of queues, and ``NFT_QUEUE_FLAG_*``."""

    first: int
    total: int
    flags: int


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
class StripTcpOption:
    """``reset tcp option``."""

    kind: int


@dataclass(frozen=True, slots=True)
class LoadRoute:
    """``rt mtu``: the largest segment of the packet's path, which is :data:`PATH_MSS` here."""

    target: int


@dataclass(frozen=True, slots=True)
class SetTcpOption:
    """``tcp option … set``: ``length`` bytes at ``offset`` of an option's header."""

    kind: int
    offset: int
    length: int
    register: int


@dataclass(frozen=True, slots=True)
class SetCtZone:
    """``ct zone set``, for one direction if given."""

    direction: str | None
    register: int


@dataclass(frozen=True, slots=True)
class Nat:
    """``nat``, ``masq`` and ``redir``: the registers of both ends of addresses and ports, if given."""

    kind: str
    addresses: tuple[int, int] | None
    ports: tuple[int, int] | None
    flags: int


@dataclass(frozen=True, slots=True)
class Reject:
    """``reject``: type and code of the answer (``enum nft_reject_types``)."""

    kind: int
    code: int


@dataclass(frozen=True, slots=True)
class Log:
    """``log``: to a netlink group, or with a level to the kernel's log."""

    prefix: str
    group: int | None
    snaplen: int
    threshold: int
    level: int | None
    flags: int


@dataclass(frozen=True, slots=True)
class NoTrack:
    """``notrack``."""


Instruction = (
    LoadMeta
    | LoadPayload
    | LoadCt
    | LoadFib
    | NumberGenerator
    | Constant
    | Decide
    | Bitwise
    | Byteorder
    | Compare
    | Range
    | LookUp
    | UpdateSet
    | Count
    | Take
    | Help
    | SetMeta
    | SetCtMark
    | SetCtZone
    | LoadRoute
    | LoadExtension
    | LoadTcpOption
    | StripTcpOption
    | TransparentProxy
    | HandOver
    | SetTcpOption
    | StorePayload
    | Nat
    | Reject
    | Log
    | NoTrack
)

_META: Final = {
    0: "len",
    2: "priority",
    3: "mark",
    6: "iifname",
    7: "oifname",
    8: "iiftype",
    10: "skuid",
    11: "skgid",
    12: "nftrace",
    16: "l4proto",
    19: "pkttype",
    20: "cpu",
    21: "iifgroup",
    22: "oifgroup",
    23: "cgroup",
    25: "ipsec",
    26: "iifkind",
    30: "time",
    31: "day",
    32: "hour",
}
_META_SET: Final = frozenset({"priority", "mark", "nftrace"})
_CT: Final = {
    0: "state",
    1: "direction",
    2: "status",
    3: "mark",
    6: "helper",
    8: "saddr",
    9: "daddr",
    10: "protocol",
    11: "proto-src",
    12: "proto-dst",
    14: "packets",
    15: "bytes",
    16: "avgpkt",
    17: "zone",
    19: "saddr",  # NFT_CT_SRC_IP, and the same for IPv6 behind it
    20: "daddr",
    21: "saddr",
    22: "daddr",
}
PATH_MSS: Final = 1460
_DIRECTIONS: Final = ("original", "reply")
_BASES: Final = {0: "link", 1: "network", 2: "transport"}
_FIB: Final = {1: "saddr", 2: "daddr", 4: "mark", 8: "iif", 16: "oif"}
_FIB_PRESENT: Final = 32
_OPERATORS: Final = ("eq", "neq", "lt", "lte", "gt", "gte")
_OBJECTS: Final[dict[int, type[Count | Help | Take]]] = {1: Count, 2: Take, 3: Help, 4: Take}
"""The classes of references to objects, by ``NFT_OBJECT_*``."""
_LIMIT_OVER: Final = 1
_SOCKET: Final = {0: "transparent", 2: "wildcard"}
_UPDATES: Final = ("add", "update", "delete")
_VERDICTS: Final = {0: "drop", 1: "accept", -1: "continue", -3: "jump", -4: "goto", -5: "return"}


def number(data: bytes | None) -> int:
    """Return the number in an attribute, which is in network order; 0 without the attribute."""
    return int.from_bytes(data or b"", "big")


def text(data: bytes) -> str:
    """Return a string of an attribute."""
    return data.partition(b"\0")[0].decode(errors="surrogateescape")


def data_of(nest: bytes) -> bytes | Verdict:
    """Return a constant or a verdict (``NFTA_DATA_*``)."""
    inner = attributes(nest)
    if 2 not in inner:
        return inner[1]
    verdict = attributes(inner[2])
    code = int.from_bytes(verdict[1], "big", signed=True)
    return Verdict(_VERDICTS[code], text(verdict[2]) if 2 in verdict else None)


def instruction(expression: bytes) -> Instruction:
    """Return the instruction in a nest ``NFTA_LIST_ELEM``. Raises ValueError for one that is not known."""
    inner = attributes(expression)
    name = text(inner[1])
    try:
        return _KINDS[name](attributes(inner.get(2, b"")))
    except KeyError as e:
        raise ValueError(f"an instruction that is not known: {name} {expression.hex()}") from e


def _constant(nest: bytes) -> bytes:
    data = data_of(nest)
    assert isinstance(data, bytes)
    return data


def _immediate(a: Attributes) -> Instruction:
    data = data_of(a[2])
    return Decide(data) if isinstance(data, Verdict) else Constant(data, number(a[1]))


def _meta(a: Attributes) -> Instruction:
    key = _META[number(a[2])]
    if 3 not in a:
        return LoadMeta(key, number(a[1]))
    if key not in _META_SET:
        raise KeyError(key)
    return SetMeta(key, number(a[3]))


def _payload(a: Attributes) -> Instruction:
    place = _BASES[number(a[2])], number(a[3]), number(a[4])
    if 5 not in a:
        return LoadPayload(*place, number(a[1]))
    return StorePayload(*place, number(a[5]), (number(a.get(6)), number(a.get(7))) == _IPV4_CHECKSUM)


_IPV4_CHECKSUM: Final = (1, 10)
"""``NFT_PAYLOAD_CSUM_INET``, and the offset of the checksum."""


def _dynset(a: Attributes) -> Instruction:
    over = limit = None
    if 7 in a:
        inner = attributes(a[7])
        kind, content = text(inner[1]), attributes(inner[2])
        match kind:
            case "limit":
                over = bool(number(content.get(5)) & _LIMIT_OVER)
            case "connlimit":
                over, limit = bool(number(content.get(2)) & _LIMIT_OVER), number(content[1])
            case _:
                raise KeyError(kind)
    return UpdateSet(_UPDATES[number(a[3])], number(a[2]), number(a[4]), over, limit)


def _ct(a: Attributes) -> Instruction:
    key = _CT[number(a[2])]
    if 4 not in a:
        return LoadCt(key, _DIRECTIONS[number(a[3])] if 3 in a else None, number(a[1]))
    if key == "zone":
        return SetCtZone(_DIRECTIONS[number(a[3])] if 3 in a else None, number(a[4]))
    if key != "mark":
        raise KeyError(key)
    return SetCtMark(number(a[4]))


def _rt(a: Attributes) -> Instruction:
    match number(a[2]):
        case 3:  # NFT_RT_TCPMSS
            return LoadRoute(number(a[1]))
        case 4:  # NFT_RT_XFRM
            return LoadMeta("rt ipsec", number(a[1]))
        case key:
            raise KeyError(key)


def _exthdr(a: Attributes) -> Instruction:
    if 1 in a and number(a.get(6)) == 0:  # NFT_EXTHDR_OP_IPV6
        return LoadExtension(number(a[2]), number(a[3]), number(a[4]), number(a[1]))
    if number(a.get(6)) != 1:  # NFT_EXTHDR_OP_TCPOPT
        raise KeyError("an option of IPv4, or a chunk")
    if 1 in a:
        present = bool(number(a.get(5)) & 1)  # NFT_EXTHDR_F_PRESENT
        return LoadTcpOption(number(a[2]), number(a[3]), number(a[4]), number(a[1]), present)
    if 7 not in a:
        return StripTcpOption(number(a[2]))
    return SetTcpOption(number(a[2]), number(a[3]), number(a[4]), number(a[7]))


def _fib(a: Attributes) -> Instruction:
    flags = number(a[3])
    present = bool(flags & _FIB_PRESENT)
    result = {1: "oif", 3: "type"}[number(a[2])] + (" present" if present else "")
    return LoadFib(" . ".join(name for bit, name in _FIB.items() if flags & bit), result, number(a[1]))


def _bitwise(a: Attributes) -> Instruction:
    if number(a.get(6)) != 0:
        raise KeyError("an operation other than a mask")
    return Bitwise(number(a[1]), number(a[2]), _constant(a[4]), _constant(a[5]))


def _ends(a: Attributes, low: int) -> tuple[int, int] | None:
    return (number(a[low]), number(a.get(low + 1, a[low]))) if low in a else None


def _log(a: Attributes) -> Instruction:
    return Log(
        prefix=text(a.get(2, b"")),
        group=number(a[1]) if 1 in a else None,
        snaplen=number(a.get(3)),
        threshold=number(a.get(4)),
        level=number(a[5]) if 5 in a else None,
        flags=number(a.get(6)),
    )


_KINDS: Final[Mapping[str, Callable[[Attributes], Instruction]]] = {
    "immediate": _immediate,
    "meta": _meta,
    "ct": _ct,
    "fib": _fib,
    "rt": _rt,
    "tproxy": lambda a: TransparentProxy(number(a[2]) if 2 in a else None, number(a[3]) if 3 in a else None),
    "queue": lambda a: HandOver(number(a[1]), number(a[2]), number(a.get(3))),
    "exthdr": _exthdr,
    "payload": _payload,
    "numgen": lambda a: NumberGenerator(
        "random" if number(a[3]) else "inc", number(a[2]), number(a.get(4)), number(a[1])
    ),
    "bitwise": _bitwise,
    "byteorder": lambda a: Byteorder(number(a[1]), number(a[2]), number(a[5]), number(a[4])),
    "cmp": lambda a: Compare(_OPERATORS[number(a[2])], number(a[1]), _constant(a[3])),
    "range": lambda a: Range(bool(number(a[2])), number(a[1]), _constant(a[3]), _constant(a[4])),
    "lookup": lambda a: LookUp(
        number(a[4]), number(a[2]), number(a[3]) if 3 in a else None, bool(number(a.get(5)))
    ),
    "dynset": _dynset,
    "socket": lambda a: LoadMeta(f"socket {_SOCKET[number(a[1])]}", number(a[2])),
    "objref": lambda a: _OBJECTS[number(a[1])](text(a[2])),
    "nat": lambda a: Nat(("snat", "dnat")[number(a[1])], _ends(a, 3), _ends(a, 5), number(a.get(7))),
    "masq": lambda a: Nat("masq", None, _ends(a, 2), number(a.get(1))),
    "redir": lambda a: Nat("redir", None, _ends(a, 1), number(a.get(3))),
    "reject": lambda a: Reject(number(a[1]), number(a.get(2))),
    "log": _log,
    "notrack": lambda _: NoTrack(),
}
