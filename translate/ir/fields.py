"""The table of fields: everything that a test can read of a packet, one row each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum, IntFlag
from typing import Final

from translate.ir.family import Family

__all__ = [
    "PORT_PROTOCOLS",
    "AddressType",
    "ConnectionState",
    "ConnectionStatus",
    "Field",
    "Protocol",
    "TcpFlag",
    "field_bits",
]


@dataclass(frozen=True, slots=True)
class _Row:
    text: str
    bits: int | None  # None: an address, as wide as the family; 0: a name
    connection: bool = False


class Field(Enum):
    """A field of a packet that tests can read.

    A field can be *absent* from a packet: ports of ICMP or of a later fragment, conntrack data of
    a packet without an entry. A test of an absent field never holds, negated or not
    (``xt_tcp``, ``xt_multiport``, ``xt_conntrack`` all return false there).
    An interface that a hook does not have is the empty name, not absent (``ip_packet_match``).
    """

    SADDR = _Row("ip.saddr", None)
    DADDR = _Row("ip.daddr", None)
    FRAGMENT = _Row("ip.fragment", 1)  # 1 for the second and later fragments (iptables -f)
    L4PROTO = _Row("l4.proto", 8)
    SPORT = _Row("l4.sport", 16)
    DPORT = _Row("l4.dport", 16)
    ICMP_TYPE = _Row("icmp.type", 8)
    ICMP_CODE = _Row("icmp.code", 8)
    TCP_FLAGS = _Row("tcp.flags", 8)
    MARK = _Row("meta.mark", 32)
    IIF = _Row("meta.iif", 0)
    OIF = _Row("meta.oif", 0)
    CT_STATE = _Row("ct.state", 8)  # exactly one ConnectionState; present on every packet
    CT_STATUS = _Row("ct.status", 32, connection=True)
    CT_MARK = _Row("ct.mark", 32, connection=True)
    CT_DIRECTION = _Row("ct.direction", 1, connection=True)  # 0 original, 1 reply
    CT_PROTO = _Row("ct.proto", 8, connection=True)
    CT_ORIGINAL_SADDR = _Row("ct.original.saddr", None, connection=True)
    CT_ORIGINAL_DADDR = _Row("ct.original.daddr", None, connection=True)
    CT_ORIGINAL_SPORT = _Row("ct.original.sport", 16, connection=True)
    CT_ORIGINAL_DPORT = _Row("ct.original.dport", 16, connection=True)
    CT_REPLY_SADDR = _Row("ct.reply.saddr", None, connection=True)
    CT_REPLY_DADDR = _Row("ct.reply.daddr", None, connection=True)
    CT_REPLY_SPORT = _Row("ct.reply.sport", 16, connection=True)
    CT_REPLY_DPORT = _Row("ct.reply.dport", 16, connection=True)
    FIB_SADDR_TYPE = _Row("fib.saddr.type", 8)
    FIB_DADDR_TYPE = _Row("fib.daddr.type", 8)
    FIB_SADDR_TYPE_IIF = _Row("fib.saddr.type.iif", 8)  # addrtype --limit-iface-in
    FIB_DADDR_TYPE_IIF = _Row("fib.daddr.type.iif", 8)
    FIB_SADDR_TYPE_OIF = _Row("fib.saddr.type.oif", 8)  # addrtype --limit-iface-out
    FIB_DADDR_TYPE_OIF = _Row("fib.daddr.type.oif", 8)

    REVERSE_PATH = _Row("fib.saddr.back", 1)  # 1: the route to the source leaves by the in-device
    REVERSE_PATH_BY_MARK = _Row("fib.saddr.back.mark", 1)  # the same, routed by the packet's mark
    BRIDGED = _Row("meta.bridged", 1)  # 1: the packet came in by a port of a bridge (br_netfilter)

    SOCKET = _Row("socket", 1)  # 1: the packet comes from a socket of the node
    SOCKET_UID = _Row("socket.uid", 32)  # of the process that opened it; absent without one
    SOCKET_GID = _Row("socket.gid", 32)
    SOCKET_CLASS = _Row("socket.class", 32)  # of its cgroup (net_cls); absent without a socket
    TAKER = _Row("taker", 1)  # 1: a socket of the node takes the packet, or listens for it
    TAKER_WILDCARD = _Row("taker.wildcard", 1)  # 1: bound to no address; absent without a full socket
    TAKER_TRANSPARENT = _Row("taker.transparent", 1)  # 1: it has IP_TRANSPARENT; absent without one
    IPSEC_IN = _Row("ipsec.in", 1)  # 1: the packet has come through IPsec
    IPSEC_OUT = _Row("ipsec.out", 1)  # 1: its route leads through IPsec

    text: str
    """The field's name as reports print it, for example ``ip.saddr``."""
    bits: int | None
    """Width of a value; None for addresses, 0 for names. See :func:`field_bits`."""
    is_name: bool
    """True if values are interface names instead of numbers."""
    is_address: bool
    """True if values are addresses of the ruleset's family."""
    is_connection: bool
    """True if the field is absent from a packet that has no conntrack entry."""

    def __init__(self, row: _Row) -> None:
        # Plain attributes: reading ``value`` of an Enum costs more than most uses of it.
        self.text = row.text
        self.bits = row.bits
        self.is_name = row.bits == 0
        self.is_address = row.bits is None
        self.is_connection = row.connection

    # Members are compared by identity; Enum would hash their names, in Python, at every dict lookup.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Field.{self.name}"


def field_bits(field: Field, family: Family) -> int:
    """Return the width of a numeric field in bits (0 for names)."""
    return family.bits if field.bits is None else field.bits


class ConnectionState(IntEnum):
    """The conntrack state of a packet; values are the bits of nftables' ``ct state``."""

    INVALID = 1
    ESTABLISHED = 2
    RELATED = 4
    NEW = 8
    UNTRACKED = 64


class ConnectionStatus(IntFlag):
    """Bits of an entry's status (``enum ip_conntrack_status``) that rules can test."""

    EXPECTED = 1 << 0
    SEEN_REPLY = 1 << 1
    ASSURED = 1 << 2
    CONFIRMED = 1 << 3
    SNAT = 1 << 4
    DNAT = 1 << 5


class AddressType(IntEnum):
    """The type of an address in the routing table (``RTN_*`` of rtnetlink)."""

    UNSPEC = 0
    UNICAST = 1
    LOCAL = 2
    BROADCAST = 3
    ANYCAST = 4
    MULTICAST = 5
    BLACKHOLE = 6
    UNREACHABLE = 7
    PROHIBIT = 8
    THROW = 9
    NAT = 10
    XRESOLVE = 11


class TcpFlag(IntFlag):
    """The flag bits of the TCP header that iptables tests."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    PSH = 0x08
    ACK = 0x10
    URG = 0x20


class Protocol(IntEnum):
    """The transport protocols whose headers nfparity looks into (IANA numbers)."""

    ICMP = 1
    TCP = 6
    UDP = 17
    DCCP = 33
    ICMPV6 = 58
    SCTP = 132
    UDPLITE = 136


PORT_PROTOCOLS: Final = frozenset(
    {Protocol.TCP, Protocol.UDP, Protocol.DCCP, Protocol.SCTP, Protocol.UDPLITE}
)
"""Protocols whose first four bytes are source and destination port."""
