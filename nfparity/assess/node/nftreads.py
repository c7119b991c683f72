"""The values that expressions of an nftables rule read from a packet, in their JSON form.

An expression reads an address, a port, or a *steady* value: one that is equal in all packets that differ in
addresses and ports only, such as an interface, a mark or the state of a connection. Hashes, raw bytes of
headers and checksums are none of these, and neither is an expression that is not listed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from translate.dataclass import dataclass

__all__ = [
    "COMBINING",
    "FIXED_STATEMENTS",
    "NAT_STATEMENTS",
    "STEADY",
    "Kind",
    "Read",
    "UnreadableError",
    "check_constant",
    "is_expression",
    "nodes",
    "read_of",
]


class Kind(Enum):
    """The kind of a value."""

    ADDRESS = "address"
    PORT = "port"
    STEADY = "equal in all packets of a class"


@dataclass(frozen=True, slots=True)
class Read:
    """A value that a rule reads from a packet, and the mask that it applies to it."""

    kind: Kind
    mask: int | None = None


STEADY: Final = Read(Kind.STEADY)

_ADDRESS_FIELDS: Final = frozenset({"saddr", "daddr"})
_PORT_FIELDS: Final = frozenset({"sport", "dport"})
_PORT_HEADERS: Final = frozenset({"tcp", "udp", "udplite", "sctp", "dccp", "th"})
_STEADY_FIELDS: Final = {
    "ip": frozenset({"version", "hdrlength", "dscp", "ecn", "length", "frag-off", "ttl", "protocol"}),
    "ip6": frozenset({"version", "dscp", "ecn", "length", "nexthdr", "hoplimit"}),
    "tcp": frozenset({"flags", "doff", "window"}),
    "udp": frozenset({"length"}),
    "icmp": frozenset({"type", "code"}),
    "icmpv6": frozenset({"type", "code"}),
}
"""Fields of headers. Checksums are missing, because they depend on the addresses."""
_STEADY_META: Final = frozenset(
    {"l4proto", "nfproto", "protocol", "mark", "length", "pkttype", "priority", "nftrace", "cpu"}
    | {f"{way}{what}" for way in ("iif", "oif") for what in ("", "name", "type", "group")}
    | {"skuid", "skgid", "cgroup"}
)
"""Keys of ``meta``. The endpoints of services of one kind are behind the same interfaces."""
_STEADY_CT: Final = frozenset(
    {"state", "status", "mark", "direction", "protocol", "l3proto", "bytes", "packets", "avgpkt"}
    | {"zone", "label", "helper", "secmark"}
)
FIXED_STATEMENTS: Final = frozenset(
    {"accept", "drop", "continue", "return", "jump", "goto", "reject", "counter", "log", "notrack", "queue"}
    | {"limit", "quota", "ct count", "ct helper", "ct timeout", "flow"}
)
"""Statements whose effect depends on nothing but their text, the number of packets and the payload."""
NAT_STATEMENTS: Final = frozenset({"snat", "dnat", "masquerade", "redirect"})
COMBINING: Final = frozenset({"|", "&", "^", "<<", ">>"})
_EXPRESSIONS: Final = frozenset(
    {"payload", "meta", "ct", "fib", "rt", "exthdr", "tcp option", "ip option", "sctp chunk", "dccp option"}
    | {"numgen", "jhash", "symhash", "socket", "osf", "ipsec", "map"}
)


class UnreadableError(Exception):
    """An expression whose constants are not understood; the text shows it."""

    def __init__(self, expression: object) -> None:
        text = json.dumps(expression)
        super().__init__(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


_SHOWN: Final = 80


def read_of(expression: Any) -> Read:
    """Return what one field, key or lookup reads. Raises UnreadableError."""
    match expression:
        case {"payload": {"protocol": str(header), "field": str(name)}}:
            if header in ("ip", "ip6") and name in _ADDRESS_FIELDS:
                return Read(Kind.ADDRESS)
            if header in _PORT_HEADERS and name in _PORT_FIELDS:
                return Read(Kind.PORT)
            if name in _STEADY_FIELDS.get(header, ()):
                return STEADY
        case {"meta": {"key": str(key)}} if key in _STEADY_META:
            return STEADY
        case {"ct": {"key": str(key)}}:
            if key.removeprefix("ip6 ").removeprefix("ip ") in _ADDRESS_FIELDS:
                return Read(Kind.ADDRESS)
            if key in ("proto-src", "proto-dst"):
                return Read(Kind.PORT)
            if key in _STEADY_CT:
                return STEADY
        case {"fib": {"result": "type" | "oif" | "oifname"}} | {"tcp option": _}:
            return STEADY
        case {"numgen": {"mode": "random"}} | {"rt": {"key": "mtu"}}:
            return STEADY
    raise UnreadableError(expression)


def is_expression(value: Any) -> bool:
    """Return whether a value is an expression that reads something, apart from combinations."""
    return isinstance(value, dict) and not value.keys().isdisjoint(_EXPRESSIONS)


def check_constant(value: Any) -> None:
    """Raise UnreadableError if any part of a value reads something from a packet."""
    for inner in nodes(value):
        if is_expression(inner):
            raise UnreadableError(inner)


def nodes(value: Any) -> Iterator[Any]:
    """Yield a value and everything in it."""
    yield value
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in children:
        yield from nodes(child)
