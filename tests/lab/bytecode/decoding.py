"""Instructions of nf_tables, decoded from the netlink attributes in which nft sends them.

The numbers are those of ``linux/netfilter/nf_tables.h``, the kernel's interface, which does not change with
nft.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
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
from tests.lab.bytecode.instructions import (
    Bitwise,
    Byteorder,
    Compare,
    Constant,
    Decide,
    Instruction,
    LoadChunk,
    LoadCt,
    LoadExtension,
    LoadFib,
    LoadMeta,
    LoadPayload,
    LoadRoute,
    LoadTcpOption,
    LookUp,
    NumberGenerator,
    Range,
    ShiftRight,
    Verdict,
)
from tests.lab.bytecode.netlink import Attributes, attributes

__all__ = ["data_of", "instruction", "number", "text"]

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
    14: "secmark",
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
_META_SET: Final = frozenset({"priority", "mark", "nftrace", "secmark"})
_CT_SET: Final = frozenset({"mark", "secmark"})
_CT: Final = {
    0: "state",
    1: "direction",
    2: "status",
    3: "mark",
    4: "secmark",
    5: "expiration",
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
    19: "saddr",  # NFT_CT_SRC_IP, and then the same for IPv6
    20: "daddr",
    21: "saddr",
    22: "daddr",
}
_DIRECTIONS: Final = ("original", "reply")
_BASES: Final = {0: "link", 1: "network", 2: "transport"}
_FIB: Final = {1: "saddr", 2: "daddr", 4: "mark", 8: "iif", 16: "oif"}
_FIB_PRESENT: Final = 32
_OPERATORS: Final = ("eq", "neq", "lt", "lte", "gt", "gte")
_OBJECTS: Final[dict[int, type[Count | Help | Take]]] = {1: Count, 2: Take, 3: Help, 4: Take}
"""The classes of references to objects, by ``NFT_OBJECT_*``."""
_LIMIT_OVER: Final = 1
_WAYS: Final = ("in", "out")
_STATE_KEYS: Final = {5: "reqid", 6: "spi"}
_SOCKET: Final = {0: "transparent", 1: "mark", 2: "wildcard"}
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
    return StorePayload(
        *place, number(a[5]), (number(a.get(6)), number(a.get(7))) == _CHECKSUMS.get(place[0])
    )


_CHECKSUMS: Final = {"network": (1, 10), "transport": (1, 16)}
"""``NFT_PAYLOAD_CSUM_INET``, and the offset of the checksum, of IPv4 and of TCP."""


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
    if key not in _CT_SET:
        raise KeyError(key)
    return SetCt(key, number(a[4]))


def _rt(a: Attributes) -> Instruction:
    match number(a[2]):
        case 0:  # NFT_RT_CLASSID
            return LoadMeta("rt classid", number(a[1]))
        case 3:  # NFT_RT_TCPMSS
            return LoadRoute(number(a[1]))
        case 4:  # NFT_RT_XFRM
            return LoadMeta("rt ipsec", number(a[1]))
        case key:
            raise KeyError(key)


def _exthdr(a: Attributes) -> Instruction:
    if 1 in a and number(a.get(6)) == 0:  # NFT_EXTHDR_OP_IPV6
        return LoadExtension(number(a[2]), number(a[3]), number(a[4]), number(a[1]))
    if number(a.get(6)) == 3 and number(a.get(5)) & 1:  # NFT_EXTHDR_OP_SCTP, NFT_EXTHDR_F_PRESENT
        return LoadChunk(number(a[2]), number(a[1]))
    if number(a.get(6)) != 1:  # NFT_EXTHDR_OP_TCPOPT
        raise KeyError("an option of IPv4, or bytes of a chunk")
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
    if number(a.get(6)) == 2:  # NFT_BITWISE_RSHIFT, of one byte
        return ShiftRight(number(a[1]), number(a[2]), int.from_bytes(_constant(a[7]), sys.byteorder))
    if number(a.get(6)) != 0:
        raise KeyError("an operation other than a mask or a shift to the right")
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
    "dup": lambda a: SendCopy(number(a[1]), number(a[2]) if 2 in a else None),
    "synproxy": lambda a: ProxyHandshake(number(a.get(1)), number(a.get(2)), number(a.get(3))),
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
    "xfrm": lambda a: LoadMeta(
        f"ipsec.{_WAYS[a[3][0]]}.{number(a.get(4))}.{_STATE_KEYS[number(a[2])]}", number(a[1])
    ),
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
