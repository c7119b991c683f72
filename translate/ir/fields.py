"""The table of fields: a row for each property of a packet that a test can read."""

from __future__ import annotations

import re
from enum import Enum, IntEnum, IntFlag
from types import MappingProxyType
from typing import Final

from translate.dataclass import dataclass
from translate.ir.family import Family

__all__ = [
    "ACCOUNTS",
    "AUTHENTICATION",
    "CLOCKS",
    "INDEX_PROTOCOLS",
    "IPSEC_DEPTH",
    "IPSEC_STATES",
    "MOBILITY",
    "NO_NEXT_HEADER",
    "PORT_PROTOCOLS",
    "REVERSE_PATHS",
    "REVERSE_ROUTES",
    "ROUTING_ADDRESSES",
    "AddressType",
    "ConnectionState",
    "ConnectionStatus",
    "Field",
    "PacketType",
    "Protocol",
    "TcpFlag",
    "field_bits",
]


class Presence(Enum):
    """The packets that have a field."""

    ALWAYS = "every packet"
    CONNECTION = "packets with a conntrack entry"
    SOME = "packets with the header that it is in"


@dataclass(frozen=True, slots=True)
class _Row:
    """Properties of a field. ``steady``: no rule changes it before control returns to the testing rule."""

    text: str
    bits: int | None  # None: an address, as wide as the family; 0: a name
    presence: Presence = Presence.SOME
    steady: bool = False
    hexadecimal: bool = False


_ALWAYS: Final = Presence.ALWAYS
_CONNECTION: Final = Presence.CONNECTION


class Field(Enum):
    """A field of a packet that tests can read.

    A field can be *absent* from a packet: ports of ICMP or of a later fragment, conntrack data of
    a packet without an entry. A test of an absent field never holds, negated or not
    (``xt_tcp``, ``xt_multiport``, ``xt_conntrack`` all return false there).
    An interface that a hook does not have is the empty name, not absent (``ip_packet_match``).
    """

    SADDR = _Row("ip.saddr", None, _ALWAYS, steady=True)
    DADDR = _Row("ip.daddr", None, _ALWAYS, steady=True)
    FRAGMENT = _Row("ip.fragment", 1, _ALWAYS, steady=True)  # 1: second and later fragments (iptables -f)
    L4PROTO = _Row("l4.proto", 8, _ALWAYS, steady=True)
    SPORT = _Row("l4.sport", 16, steady=True)
    DPORT = _Row("l4.dport", 16, steady=True)
    ICMP_TYPE = _Row("icmp.type", 8, steady=True)
    ICMP_CODE = _Row("icmp.code", 8, steady=True)
    TCP_FLAGS = _Row("tcp.flags", 8, steady=True, hexadecimal=True)
    TCP_MSS = _Row("tcp.mss", 16)  # absent from a segment without the option
    TCP_OPTIONS = _Row("tcp.options", 256, hexadecimal=True)  # a bit for each kind that a segment has
    ESP_SPI = _Row("esp.spi", 32, steady=True)
    AH_SPI = _Row("ah.spi", 32, steady=True)
    AH_LENGTH = _Row("ah.length", 8, steady=True)  # in units of 4 bytes, without the first two
    AH_RESERVED = _Row("ah.reserved", 16, steady=True)
    IPCOMP_CPI = _Row("ipcomp.cpi", 16, steady=True)
    DCCP_TYPE = _Row("dccp.type", 4, steady=True)
    DCCP_OPTIONS = _Row("dccp.options", 256, steady=True, hexadecimal=True)  # a bit for each kind
    MH_TYPE = _Row("mh.type", 8, steady=True)  # of a Mobility Header of IPv6
    MH_NEXT = _Row("mh.next", 8, steady=True)  # the protocol of the header after it
    SCTP_CHUNKS = _Row("sctp.chunks", 256, steady=True, hexadecimal=True)  # a bit for each type of chunk
    LENGTH = _Row("ip.length", 32, _ALWAYS, steady=True)  # headers included; more than 16 bits in a jumbogram
    TTL = _Row("ip.ttl", 8, _ALWAYS)
    TOS = _Row("ip.tos", 8, _ALWAYS, hexadecimal=True)  # DSCP and ECN; the traffic class of IPv6
    ETHER_SADDR = _Row("ether.saddr", 48, steady=True, hexadecimal=True)  # absent without Ethernet
    EUI64 = _Row("eui64", 1, steady=True)  # 1: made from the frame's source; absent without Ethernet
    PACKET_TYPE = _Row("meta.pkttype", 8, _ALWAYS, steady=True)  # a PacketType
    ROUTING_TYPE = _Row("routing.type", 8, steady=True)  # of the first routing header of IPv6
    ROUTING_LEFT = _Row("routing.left", 8, steady=True)
    ROUTING_LENGTH = _Row("routing.length", 8, steady=True)  # in units of 8 bytes, without the first
    ROUTING_NEXT = _Row("routing.next", 8, steady=True)  # the protocol of the header after it
    ROUTING_LAST = _Row("routing.last", 8, steady=True)  # of type 4: the index of the last entry
    ROUTING_FLAGS = _Row("routing.flags", 8, steady=True, hexadecimal=True)  # of type 4; reserved in type 0
    ROUTING_TAG = _Row("routing.tag", 16, steady=True)
    ROUTING_IN_ORDER = _Row("routing.in-order", 1, steady=True)  # 1: segments left up to the last entry
    ROUTING_FIRST_ADDRESS = _Row("routing.address.1", None, steady=True)  # absent if the packet ends before
    ROUTING_SECOND_ADDRESS = _Row("routing.address.2", None, steady=True)
    HOP_LENGTH = _Row("hop.length", 8, steady=True)  # of the hop-by-hop options of IPv6, counted alike
    DESTINATION_LENGTH = _Row("destination.length", 8, steady=True)  # of the first destination options
    FRAGMENT_ID = _Row("fragment.id", 32, steady=True)  # of the fragment header of IPv6, like the next four
    FRAGMENT_OFFSET = _Row("fragment.offset", 13, steady=True)
    FRAGMENT_MORE = _Row("fragment.more", 1, steady=True)
    FRAGMENT_RESERVED = _Row("fragment.reserved", 8, steady=True)
    FRAGMENT_RESERVED2 = _Row("fragment.reserved2", 2, steady=True)
    MARK = _Row("meta.mark", 32, _ALWAYS, hexadecimal=True)
    IIF = _Row("meta.iif", 0, _ALWAYS)
    OIF = _Row("meta.oif", 0, _ALWAYS)
    IIF_GROUP = _Row("meta.iifgroup", 32, hexadecimal=True)  # absent where a hook has no interface
    OIF_GROUP = _Row("meta.oifgroup", 32, hexadecimal=True)
    REALM = _Row("route.realm", 32, _ALWAYS, hexadecimal=True)  # of the route to the destination
    CPU = _Row("meta.cpu", 32, _ALWAYS, steady=True)  # the processor that handles the packet
    CT_STATE = _Row("ct.state", 8, _ALWAYS)  # one ConnectionState bit
    CT_STATUS = _Row("ct.status", 32, _CONNECTION)
    CT_MARK = _Row("ct.mark", 32, _CONNECTION, hexadecimal=True)
    CT_DIRECTION = _Row("ct.direction", 1, _CONNECTION)  # 0 original, 1 reply
    CT_PROTO = _Row("ct.proto", 8, _CONNECTION)
    CT_ORIGINAL_SADDR = _Row("ct.original.saddr", None, _CONNECTION)
    CT_ORIGINAL_DADDR = _Row("ct.original.daddr", None, _CONNECTION)
    CT_ORIGINAL_SPORT = _Row("ct.original.sport", 16, _CONNECTION)
    CT_ORIGINAL_DPORT = _Row("ct.original.dport", 16, _CONNECTION)
    CT_REPLY_SADDR = _Row("ct.reply.saddr", None, _CONNECTION)
    CT_REPLY_DADDR = _Row("ct.reply.daddr", None, _CONNECTION)
    CT_REPLY_SPORT = _Row("ct.reply.sport", 16, _CONNECTION)
    CT_REPLY_DPORT = _Row("ct.reply.dport", 16, _CONNECTION)
    CT_HELPER = _Row("ct.helper", 0)  # of the connection that expected this connection
    CT_EXPIRES = _Row("ct.expires", 32, _CONNECTION)  # seconds until conntrack forgets the connection
    CT_PACKETS = _Row("ct.packets", 64, _CONNECTION)  # of both directions, with this packet
    CT_ORIGINAL_PACKETS = _Row("ct.original.packets", 64, _CONNECTION)
    CT_REPLY_PACKETS = _Row("ct.reply.packets", 64, _CONNECTION)
    CT_BYTES = _Row("ct.bytes", 64, _CONNECTION)  # from the IP headers on
    CT_ORIGINAL_BYTES = _Row("ct.original.bytes", 64, _CONNECTION)
    CT_REPLY_BYTES = _Row("ct.reply.bytes", 64, _CONNECTION)
    CT_AVERAGE = _Row("ct.average", 64, _CONNECTION)  # bytes in a packet, rounded down
    CT_ORIGINAL_AVERAGE = _Row("ct.original.average", 64, _CONNECTION)
    CT_REPLY_AVERAGE = _Row("ct.reply.average", 64, _CONNECTION)
    FIB_SADDR_TYPE = _Row("fib.saddr.type", 8, _ALWAYS)
    FIB_DADDR_TYPE = _Row("fib.daddr.type", 8, _ALWAYS)
    FIB_SADDR_TYPE_IIF = _Row("fib.saddr.type.iif", 8)  # addrtype --limit-iface-in
    FIB_DADDR_TYPE_IIF = _Row("fib.daddr.type.iif", 8)
    FIB_SADDR_TYPE_OIF = _Row("fib.saddr.type.oif", 8)  # addrtype --limit-iface-out
    FIB_DADDR_TYPE_OIF = _Row("fib.daddr.type.oif", 8)

    REVERSE_PATH = _Row("fib.saddr.back", 1, _ALWAYS)  # 1: the route to the source uses the input device
    REVERSE_PATH_BY_MARK = _Row("fib.saddr.back.mark", 1, _ALWAYS)  # the same, looked up with the mark
    REVERSE_ROUTE = _Row("fib.saddr.route", 1, _ALWAYS)  # 1: there is a route to the source, by any device
    REVERSE_ROUTE_BY_MARK = _Row("fib.saddr.route.mark", 1, _ALWAYS)
    BRIDGED = _Row("meta.bridged", 1, _ALWAYS)  # 1: the packet came in through a bridge port (br_netfilter)
    BRIDGED_ON = _Row("meta.bridged.on", 1, _ALWAYS)  # 1: it goes out through a bridge port, without routing
    BRIDGE_PORT_IN = _Row("bridge.port.in", 0, _ALWAYS)  # the empty name if there is none
    BRIDGE_PORT_OUT = _Row("bridge.port.out", 0)  # absent if only the input device is a port

    SOCKET = _Row("socket", 1, _ALWAYS)  # 1: the packet comes from a socket of the node
    SOCKET_UID = _Row("socket.uid", 32)  # of the process that opened the socket
    SOCKET_GID = _Row("socket.gid", 32)
    SOCKET_CLASS = _Row("socket.class", 32)  # net_cls class of its cgroup; absent without a socket
    TAKER = _Row("taker", 1, _ALWAYS)  # 1: the packet belongs to a connected or listening socket
    TAKER_WILDCARD = _Row("taker.wildcard", 1)  # 1: bound to no address; absent without a full socket
    TAKER_TRANSPARENT = _Row("taker.transparent", 1)  # 1: it has IP_TRANSPARENT; absent without one
    IPSEC_IN = _Row("ipsec.in", 1, _ALWAYS)  # 1: the packet has come through IPsec
    IPSEC_OUT = _Row("ipsec.out", 1, _ALWAYS)  # 1: its route leads through IPsec
    IPSEC_IN_STATES = _Row("ipsec.in.states", 1, _ALWAYS)  # 1: the states of IPsec fit the rule's options
    IPSEC_OUT_STATES = _Row("ipsec.out.states", 1, _ALWAYS)
    IPSEC_IN_0_REQID = _Row("ipsec.in.0.reqid", 32)  # of the first state of IPsec; absent without one
    IPSEC_IN_0_SPI = _Row("ipsec.in.0.spi", 32, hexadecimal=True)
    IPSEC_IN_1_REQID = _Row("ipsec.in.1.reqid", 32)
    IPSEC_IN_1_SPI = _Row("ipsec.in.1.spi", 32, hexadecimal=True)
    IPSEC_IN_2_REQID = _Row("ipsec.in.2.reqid", 32)
    IPSEC_IN_2_SPI = _Row("ipsec.in.2.spi", 32, hexadecimal=True)
    IPSEC_IN_3_REQID = _Row("ipsec.in.3.reqid", 32)
    IPSEC_IN_3_SPI = _Row("ipsec.in.3.spi", 32, hexadecimal=True)
    IPSEC_IN_4_REQID = _Row("ipsec.in.4.reqid", 32)
    IPSEC_IN_4_SPI = _Row("ipsec.in.4.spi", 32, hexadecimal=True)
    IPSEC_IN_5_REQID = _Row("ipsec.in.5.reqid", 32)
    IPSEC_IN_5_SPI = _Row("ipsec.in.5.spi", 32, hexadecimal=True)
    IPSEC_OUT_0_REQID = _Row("ipsec.out.0.reqid", 32)
    IPSEC_OUT_0_SPI = _Row("ipsec.out.0.spi", 32, hexadecimal=True)
    IPSEC_OUT_1_REQID = _Row("ipsec.out.1.reqid", 32)
    IPSEC_OUT_1_SPI = _Row("ipsec.out.1.spi", 32, hexadecimal=True)
    IPSEC_OUT_2_REQID = _Row("ipsec.out.2.reqid", 32)
    IPSEC_OUT_2_SPI = _Row("ipsec.out.2.spi", 32, hexadecimal=True)
    IPSEC_OUT_3_REQID = _Row("ipsec.out.3.reqid", 32)
    IPSEC_OUT_3_SPI = _Row("ipsec.out.3.spi", 32, hexadecimal=True)
    IPSEC_OUT_4_REQID = _Row("ipsec.out.4.reqid", 32)
    IPSEC_OUT_4_SPI = _Row("ipsec.out.4.spi", 32, hexadecimal=True)
    IPSEC_OUT_5_REQID = _Row("ipsec.out.5.reqid", 32)
    IPSEC_OUT_5_SPI = _Row("ipsec.out.5.spi", 32, hexadecimal=True)

    # The node's clock in UTC when the packet passes: seconds since 1970, and values computed from them.
    CLOCK = _Row("clock", 32, _ALWAYS, steady=True)
    CLOCK_DAYTIME = _Row("clock.daytime", 17, _ALWAYS, steady=True)  # seconds since midnight
    CLOCK_WEEKDAY = _Row("clock.weekday", 3, _ALWAYS, steady=True)  # 0 is Sunday
    CLOCK_MONTHDAY = _Row("clock.monthday", 5, _ALWAYS, steady=True)  # from 1
    CLOCK_MONTHDAY_BEFORE = _Row("clock.monthday.before", 5, _ALWAYS, steady=True)  # a day earlier

    text: str
    """The field's name as reports print it, for example ``ip.saddr``."""
    bits: int | None
    """Width of a value; None for addresses, 0 for names. See :func:`field_bits`."""
    is_name: bool
    """True if values are names, of interfaces or helpers, instead of numbers."""
    is_address: bool
    """True if values are addresses of the ruleset's family."""
    is_connection: bool
    """True if the field is absent from a packet that has no conntrack entry."""
    is_always_present: bool
    """True if every packet has the field."""
    is_steady: bool
    """True if the field changes only by NAT, which ends the table for the packet."""
    is_hexadecimal: bool
    """True if its numbers are written in hexadecimal."""

    def __init__(self, row: _Row) -> None:
        # Plain attributes: reading ``value`` of an Enum costs more than most uses of it.
        self.text = row.text
        self.bits = row.bits
        self.is_name = row.bits == 0
        self.is_address = row.bits is None
        self.is_connection = row.presence is Presence.CONNECTION
        self.is_always_present = row.presence is Presence.ALWAYS
        self.is_steady = row.steady
        self.is_hexadecimal = row.hexadecimal

    # Members are compared by identity; Enum would hash their names, in Python, at every dict lookup.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"Field.{self.name}"


ACCOUNTS: Final = frozenset(
    field for field in Field if field.text.endswith((".packets", ".bytes", ".average"))
)
"""Fields that the kernel counts for a connection (``net.netfilter.nf_conntrack_acct``)."""

CLOCKS: Final = frozenset(field for field in Field if field.text.partition(".")[0] == "clock")
"""Fields of the node's clock."""

AUTHENTICATION: Final = frozenset({Field.AH_SPI, Field.AH_LENGTH, Field.AH_RESERVED})
"""The fields of an AH header, which is an extension header in IPv6."""

ROUTING_ADDRESSES: Final = frozenset({Field.ROUTING_FIRST_ADDRESS, Field.ROUTING_SECOND_ADDRESS})
"""The fields of a routing header that are addresses."""

REVERSE_ROUTES: Final = frozenset({Field.REVERSE_ROUTE, Field.REVERSE_ROUTE_BY_MARK})
"""Fields that are 1 if there is a route to the source by any device."""

REVERSE_PATHS: Final = frozenset({Field.REVERSE_PATH, Field.REVERSE_PATH_BY_MARK, *REVERSE_ROUTES})
"""Fields for which the route to the source is looked up (``-m rpfilter``)."""


IPSEC_DEPTH: Final = 6
"""The most states of IPsec that a packet passes (``XFRM_MAX_DEPTH``)."""

IPSEC_STATES: Final = frozenset(field for field in Field if re.match(r"ipsec\.(in|out)\.\d", field.text))
"""The fields of the states that a packet has passed or will pass, counted from 0 in this order."""


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


class PacketType(IntEnum):
    """The kinds of frames by their destination (``PACKET_*`` of linux/if_packet.h)."""

    UNICAST = 0
    BROADCAST = 1
    MULTICAST = 2
    OTHERHOST = 3


class TcpFlag(IntFlag):
    """The flag bits of the TCP header (RFC 9293); ``--tcp-flags`` has no names for the last two."""

    FIN = 0x01
    SYN = 0x02
    RST = 0x04
    PSH = 0x08
    ACK = 0x10
    URG = 0x20
    ECE = 0x40
    CWR = 0x80

    def has(self, flags: TcpFlag) -> bool:
        """Return whether any of these flags is set. It is much faster than ``&``, which makes a TcpFlag."""
        return int.__and__(self, flags) != 0


class Protocol(IntEnum):
    """The transport protocols whose headers nfparity reads (IANA numbers)."""

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

INDEX_PROTOCOLS: Final = MappingProxyType({Field.ESP_SPI: 50, Field.AH_SPI: 51, Field.IPCOMP_CPI: 108})
"""The protocols of IPsec (IANA numbers), by the field that has the index of their security association."""

MOBILITY: Final = 135
"""The protocol of a packet with a Mobility Header (RFC 6275)."""

NO_NEXT_HEADER: Final = 59
"""The protocol of a header of IPv6 after which nothing follows (RFC 8200, 4.7)."""
