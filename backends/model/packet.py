"""A packet as header fields, the form that all backends share."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from translate.dataclass import dataclass
from translate.ir import PORT_PROTOCOLS, Family, Protocol, TcpFlag, format_address

__all__ = [
    "DEFAULT_TTL",
    "EXTENSION_HEADERS",
    "FRAGMENT_SIZE",
    "GRE",
    "LONGEST_QUOTE",
    "NOT_TAKEN",
    "NO_NEXT_HEADER",
    "TRANSPORT_HEADERS",
    "Address",
    "Fragment",
    "Icmp6Type",
    "IcmpType",
    "Packet",
    "Port",
    "PortClass",
    "Routing",
    "Tuple",
]

DEFAULT_TTL: Final = 64

GRE: Final = 47
"""Generic Routing Encapsulation (RFC 2784); the payload of a packet begins with its header."""

EXTENSION_HEADERS: Final = frozenset({0, 43, 44, 51, 60})
"""The numbers of extension headers of IPv6: ``-p`` tests the protocol behind them (``ipv6_find_hdr``)."""

NO_NEXT_HEADER: Final = 59
"""The protocol number of an IPv6 packet with nothing after its header (RFC 8200, 4.7)."""


class IcmpType:
    """The ICMP types that nfparity treats by name (RFC 792)."""

    ECHO_REPLY: Final = 0
    DEST_UNREACHABLE: Final = 3
    REDIRECT: Final = 5
    ECHO_REQUEST: Final = 8
    TIME_EXCEEDED: Final = 11
    PARAMETER_PROBLEM: Final = 12
    TIMESTAMP: Final = 13
    TIMESTAMP_REPLY: Final = 14


class Icmp6Type:
    """The ICMPv6 types that nfparity treats by name (RFC 4443, RFC 4861)."""

    DEST_UNREACHABLE: Final = 1
    PACKET_TOO_BIG: Final = 2
    TIME_EXCEEDED: Final = 3
    PARAMETER_PROBLEM: Final = 4
    ECHO_REQUEST: Final = 128
    ECHO_REPLY: Final = 129
    REDIRECT: Final = 137


@dataclass(frozen=True, slots=True, order=True)
class PortClass:
    """A port picked by the kernel: any in ``low..high`` (both inclusive)."""

    low: int
    high: int

    def __contains__(self, port: int) -> bool:
        return self.low <= port <= self.high

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"


Port = int | PortClass

Address = Annotated[int, "address"]
"""An address as an integer of its family."""

_ICMP: Final = frozenset({Protocol.ICMP, Protocol.ICMPV6})

LONGEST_QUOTE: Final = {Family.IP: 548, Family.IP6: 1232}
"""The bytes of the quoted packet that fit in an ICMP error.

The error has at most 576 bytes (RFC 1812, 4.3.2.3), or 1280 bytes for ICMPv6 (RFC 4443, 2.4).
"""

_MSS_LENGTH: Final = 4
FRAGMENT_SIZE: Final = 8
"""The length of the fragment header of IPv6, and the unit of a fragment's offset, in bytes."""
_HEADER: Final = {Family.IP: 20, Family.IP6: 40}
_TRANSPORT: Final = {
    (family, int(proto)): length
    for family, icmp in ((Family.IP, Protocol.ICMP), (Family.IP6, Protocol.ICMPV6))
    for proto, length in (
        (Protocol.TCP, 20),
        (Protocol.UDP, 8),
        (Protocol.UDPLITE, 8),
        (Protocol.SCTP, 20),
        (icmp, 8),
    )
}
"""The length of each transport header without options; for SCTP with its chunk header."""

TRANSPORT_HEADERS: Final = {
    (family, proto): 12 if proto == Protocol.SCTP else length
    for (family, proto), length in _TRANSPORT.items()
}
"""The length of each transport header without options and chunks."""


class Tuple(NamedTuple):
    """One direction of a connection (``nf_conntrack_tuple``).

    For ICMP queries ``sport`` is the identifier and ``dport`` is ``type << 8 | code``.
    """

    src: int
    dst: int
    proto: int
    sport: Port
    dport: Port


NOT_TAKEN: Final = frozenset({2, 3, 4})
"""Types of routing headers that a node drops unless it is configured for them: mobility, RPL, segments."""


class Routing(NamedTuple):
    """A routing header of IPv6 (RFC 8200, 4.4): its type, the segments left, and its length.

    As in the header, ``length`` counts the units of 8 bytes after the first one. The rest of the header is
    zero.
    """

    type: int
    left: int
    length: int

    @property
    def size(self) -> int:
        """The length in bytes."""
        return 8 * (self.length + 1)


class Fragment(NamedTuple):
    """The place of a fragment in its packet (RFC 791, 3.1; RFC 8200, 4.5).

    ``offset`` counts units of 8 bytes; ``more``: another fragment follows. ``id`` is the identification of
    the packet; None gives each packet that a flow sends an identification of its own. ``reserved`` is the
    reserved byte of the fragment header of IPv6.
    """

    offset: int
    more: bool = False
    id: int | None = None
    reserved: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """One packet. Addresses are integers of the family; ports are None without a port header.

    ``icmp_id`` is the identifier of a query; ``quoted`` is the packet inside an ICMP error. ``mark`` is the
    sender's ``SO_MARK``, ``uid`` and ``gid`` are the user and group that opened its socket (packets made on
    the node only). ``bad_checksum``: the packet is sent with a wrong transport checksum, so it is INVALID for
    conntrack (``nf_conntrack_checksum``). ``mss`` is the maximum segment size that a TCP segment with SYN
    announces; None for no such option. ``tos`` is the whole byte, DSCP and ECN (the traffic class of IPv6).
    ``filled_to``: zeros follow the payload up to this length of the IP packet. ``smac`` and ``dmac`` are the
    hardware addresses of the frame; None means the address of the neighbour or of the device
    (:mod:`backends.model.link`). ``routing`` is the routing header of an IPv6 packet, None without such a
    header; ``hop_options`` and ``destination_options`` are the lengths of headers with such options, in units
    of 8 bytes after the first one, None without the header. ``fragment`` is the place of a packet that is a
    fragment. The first fragment has the transport header, whose checksum is that of the whole packet. A later
    fragment has only payload. ``truncated``: the packet ends within its transport header, and ``payload`` is
    its part of the header. ``time`` is the time on the node's clock when the packet is sent, in seconds
    since 1970 (UTC). None means the present, or the time of the previous packet plus the pauses after it.
    Only the simulator sets its clock. ``cpu`` is the number of the processor that handles the packet. Ports
    are a :class:`PortClass` only in the simulator, for a port that the kernel picks.
    """

    family: Family
    src: int
    dst: int
    proto: int
    sport: Port | None = None
    dport: Port | None = None
    icmp_type: int | None = None
    icmp_code: int | None = None
    icmp_id: Port | None = None
    flags: TcpFlag = TcpFlag.SYN
    seq: int = 0
    ack: int = 0
    ttl: int = DEFAULT_TTL
    mark: int = 0
    uid: int = 0
    gid: int = 0
    payload: bytes = b""
    quoted: Packet | None = None
    bad_checksum: bool = False
    mss: int | None = None
    tos: int = 0
    filled_to: int = 0
    smac: int | None = None
    dmac: int | None = None
    routing: Routing | None = None
    hop_options: int | None = None
    destination_options: int | None = None
    fragment: Fragment | None = None
    truncated: bool = False
    time: int | None = None
    cpu: int = 0

    @property
    def length(self) -> int:
        """The length of the IP packet in bytes, headers included (``tot_len``, 40 + ``payload_len``)."""
        length = _HEADER[self.family]
        if self.fragment is not None and self.family is Family.IP6:
            length += FRAGMENT_SIZE
        if not self.is_headless:
            length += _TRANSPORT.get((self.family, self.proto), 0)
        if self.routing is not None:
            length += self.routing.size
        length += sum(8 * (units + 1) for units in self.option_headers if units is not None)
        if self.quoted is not None and self.is_icmp:
            return length + min(self.quoted.length, LONGEST_QUOTE[self.family])
        body = len(self.payload)
        if self.is_headless:
            return length + body
        if self.proto == Protocol.TCP and self.mss is not None and self.flags & TcpFlag.SYN:
            length += _MSS_LENGTH
        return length + (-(-body // 4) * 4 if self.proto == Protocol.SCTP else body)

    @property
    def option_headers(self) -> tuple[int | None, int | None]:
        """The lengths of the hop-by-hop and the destination options."""
        return self.hop_options, self.destination_options

    @property
    def has_ports(self) -> bool:
        """True if the packet has ports: its protocol has them, and it has a whole transport header."""
        return self.proto in PORT_PROTOCOLS and not self.is_headless

    @property
    def is_later_fragment(self) -> bool:
        """True for a fragment without a transport header."""
        return self.fragment is not None and self.fragment.offset != 0

    @property
    def is_headless(self) -> bool:
        """True without a whole transport header: for a later fragment, and a truncated packet."""
        return self.truncated or (self.fragment is not None and self.fragment.offset != 0)

    @property
    def is_icmp(self) -> bool:
        """True for a packet with a whole header of ICMP or ICMPv6."""
        return self.proto in _ICMP and not self.is_headless

    def __str__(self) -> str:
        """Return the packet in the form of ``explain --packet``: ``udp 10.0.0.1:1 > 10.0.0.2:53``."""
        src, dst = format_address(self.family, self.src), format_address(self.family, self.dst)
        if self.family is Family.IP6:
            src, dst = f"[{src}]", f"[{dst}]"
        if self.is_icmp:
            icmp = "icmp" if self.proto == Protocol.ICMP else "icmpv6"
            identifier = "" if self.icmp_id is None else f" id {self.icmp_id}"
            return f"{icmp} {src} > {dst} type {self.icmp_type}/{self.icmp_code or 0}{identifier}"
        try:
            name = Protocol(self.proto).name.lower()
        except ValueError:
            name = f"proto-{self.proto}"
        if self.is_later_fragment:
            return f"{name} {src} > {dst}, a later fragment"
        if self.truncated:
            return f"{name} {src} > {dst}, {len(self.payload)} bytes of its header"
        if not self.has_ports:
            return f"{name} {src} > {dst}"
        return f"{name} {src}:{self.sport} > {dst}:{self.dport}"
