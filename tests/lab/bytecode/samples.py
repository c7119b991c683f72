"""Packets for runs of bytecode, and the state of such a packet.

Every field that a test can read has a value. The combination of values need not occur in a real packet,
because only the instructions are tested. Values that the kernel reads from the same place are consistent. The
first bytes of a transport header are ports or an ICMP type and code, and a packet without a conntrack entry
has none of its data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from backends.model.clock import clock_value
from translate.ir import (
    INDEX_PROTOCOLS,
    IPSEC_STATES,
    MOBILITY,
    PORT_PROTOCOLS,
    REVERSE_PATHS,
    REVERSE_ROUTES,
    AddressType,
    ConnectionState,
    Family,
    Field,
    Protocol,
)

__all__ = ["EXTENSIONS", "FRAGMENT", "NEVER_SEEN", "ROUTING", "TRACKED", "Sample", "State"]

TRACKED: Final = frozenset({ConnectionState.NEW, ConnectionState.ESTABLISHED, ConnectionState.RELATED})
"""The states of packets that have a conntrack entry (``nf_ct_get``)."""

NEVER_SEEN: Final = -1
"""The age of an address that is not in a list of ``-m recent``."""

ROUTING: Final = 43
FRAGMENT: Final = 44
EXTENSIONS: Final = {
    0: (Field.HOP_LENGTH,),
    ROUTING: (
        *(Field.ROUTING_NEXT, Field.ROUTING_LENGTH, Field.ROUTING_TYPE, Field.ROUTING_LEFT),
        *(Field.ROUTING_LAST, Field.ROUTING_FLAGS, Field.ROUTING_TAG),
        *(Field.ROUTING_FIRST_ADDRESS, Field.ROUTING_SECOND_ADDRESS, Field.ROUTING_IN_ORDER),
    ),
    FRAGMENT: (
        *(Field.FRAGMENT_ID, Field.FRAGMENT_OFFSET, Field.FRAGMENT_MORE),
        *(Field.FRAGMENT_RESERVED, Field.FRAGMENT_RESERVED2),
    ),
    60: (Field.DESTINATION_LENGTH,),
    MOBILITY: (Field.MH_NEXT, Field.MH_TYPE),
}
"""The fields of each header that ``exthdr`` reads, by its number, in its order except for a fragment's."""

_EXTENSION_OF: Final = {field: number for number, fields in EXTENSIONS.items() for field in fields}
_ICMP: Final = {Family.IP: Protocol.ICMP, Family.IP6: Protocol.ICMPV6}
_LIMITED_BROADCAST: Final = 0xFFFFFFFF
_DAY: Final = 86400
_FIRST_OF_JANUARY: Final = 1767225600
"""2026-01-01; the days of this month, and the day after it, have every number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A packet before the first rule.

    ``values`` has every field but those of ICMP, which are the two bytes of the source port. ``draw`` is the
    source of every random number (0 to 2**31 - 1), and ``count`` is the value of every counter. ``within``:
    every bucket has a token for the packet. ``ages`` are the seconds since an address was put into a list, in
    turn for the lists of the ruleset. ``broadcast_back``: the local table has the source as a broadcast
    address of the input interface. ``kind`` is the kind of this interface (``rtnl_link_ops``) or None, and
    ``ether`` is true for an Ethernet device. ``extended``: the packet has extension headers and an MSS, which
    most packets lack; ``lacking`` is the number of one extension header that is missing even then.
    ``fraction`` is the part of the clock's second, in nanoseconds. ``labels`` are those of the packet and
    of its connection for a security module. ``states`` is the number of states of IPsec that it passes.
    ``socket_mark`` is the mark of the socket that takes it, None if this is not a full socket.
    ``owned``: a process has the socket that sends it. A socket of the kernel is bound to no address.
    """

    family: Family
    values: Mapping[Field, int | str]
    draw: int = 0
    count: int = 0
    within: bool = True
    ages: tuple[int, ...] = (NEVER_SEEN,)
    broadcast_back: bool = False
    kind: str | None = None
    ether: bool = True
    extended: bool = True
    lacking: int | None = None
    fraction: int = 0
    labels: tuple[int, int] = (0, 0)
    states: int = 2
    owned: bool = True
    socket_mark: int | None = 0x60

    def having(self, changed: Field, value: int | str) -> Sample:
        """Return the packet with another value of a field."""
        match changed:
            case Field.ICMP_TYPE | Field.ICMP_CODE:
                assert isinstance(value, int)
                both = self.number(Field.SPORT)
                high, low = both >> 8, both & 0xFF
                both = value << 8 | low if changed is Field.ICMP_TYPE else high << 8 | value
                return replace(self, values={**self.values, Field.SPORT: both})
            case Field.SOCKET:  # a packet of the node is looked up for no other socket (nft_socket_do_lookup)
                return replace(self, values={**self.values, changed: value, Field.TAKER: value})
            case Field.BRIDGED:
                return replace(self, kind="bridge" if value else None)
            case Field.ROUTING_IN_ORDER:
                last, left = self.number(Field.ROUTING_LAST), self.number(Field.ROUTING_LEFT)
                if value:
                    changed, value = Field.ROUTING_LEFT, min(left, last)
                else:
                    changed, value = Field.ROUTING_LAST, min(last, left - 1 if left else left)
                return replace(self, values={**self.values, changed: value})
            case Field.CLOCK_MONTHDAY | Field.CLOCK_MONTHDAY_BEFORE:
                later = int(changed is Field.CLOCK_MONTHDAY_BEFORE)
                time = _FIRST_OF_JANUARY + _DAY * (int(value) - 1 + later)
                return replace(self, values={**self.values, Field.CLOCK: time})
            case _ if changed in REVERSE_PATHS:
                values = {**self.values, **dict.fromkeys(REVERSE_PATHS, value)}
                return replace(self, values=values, broadcast_back=False)
            case _:
                return replace(self, values={**self.values, changed: value})

    def number(self, field: Field) -> int:
        """Return the value of a field that is a number."""
        value = self.values[field]
        assert isinstance(value, int)
        return value

    @property
    def _broadcast_by_itself(self) -> bool:
        """Return whether the source has the type broadcast independent of routes."""
        source = self.number(Field.SADDR)
        return source >> 24 == 0 or source == _LIMITED_BROADCAST

    def leads_back(self, field: Field) -> bool:
        """Return the result of ``rpfilter``: true if there is a route, and it is not for a broadcast
        address.
        """
        if not self.values[field] or self._broadcast_by_itself or self.family is Family.IP6:
            return bool(self.values[field])
        kind = Field.FIB_SADDR_TYPE
        elsewhere = field in REVERSE_ROUTES and self.address_type(kind) == AddressType.BROADCAST
        return not self.broadcast_back and not elsewhere

    @property
    def fragment(self) -> bool:
        """True for a later fragment, which has no transport header, only data that looks like one."""
        return bool(self.values[Field.FRAGMENT])

    def address_type(self, field: Field) -> int:
        """Return the result of ``fib … type``, which only reads the local table
        (``__inet_dev_addr_type``).
        """
        value = self.number(field)
        if self.family is Family.IP6 or field not in _SOURCE_TYPES:
            return value
        if self._broadcast_by_itself or self.broadcast_back:
            return AddressType.BROADCAST
        if field is Field.FIB_SADDR_TYPE_IIF and value == AddressType.BROADCAST:
            # For a broadcast address of the input interface itself, the route back leads to this interface.
            return AddressType.UNICAST if self.values[Field.REVERSE_PATH] else value
        return value


_SOURCE_TYPES: Final = frozenset({Field.FIB_SADDR_TYPE, Field.FIB_SADDR_TYPE_IIF, Field.FIB_SADDR_TYPE_OIF})


@dataclass(slots=True)
class State:
    """A packet in a walk through rules: its changed fields, and the recorded effects.

    ``events`` are in order, each with header, marks and state at that time. ``listed`` has the additions to
    (True) and removals from (False) the lists of ``-m recent``, by list, timeout and address.
    """

    sample: Sample
    tos: int = 0
    ttl: int = 0
    flags: int = 0
    mark: int = 0
    connmark: int = 0
    label: int = 0
    connlabel: int = 0
    tracked: ConnectionState = ConnectionState.NEW
    events: list[tuple[object, ...]] = field(default_factory=list)
    listed: dict[tuple[str, int | None, bytes], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tos, self.ttl = self.sample.number(Field.TOS), self.sample.number(Field.TTL)
        self.flags = self.sample.number(Field.TCP_FLAGS)
        self.mark = self.sample.number(Field.MARK)
        self.connmark = self.sample.number(Field.CT_MARK)
        self.label, self.connlabel = self.sample.labels
        self.tracked = ConnectionState(self.sample.number(Field.CT_STATE))

    def note(self, *event: object) -> None:
        """Record an effect of a rule."""
        self.events.append(
            (*event, self.tos, self.ttl, self.flags, self.mark, self.connmark, self.tracked.name)
        )

    def translate(
        self, kind: str, addresses: tuple[int, int] | None, ports: tuple[int, int] | None, options: int
    ) -> None:
        """Record a NAT target; for a protocol without ports, no port is recorded (``l4proto_manip_pkt``)."""
        if self.sample.number(Field.L4PROTO) not in (_ICMP[self.sample.family], *PORT_PROTOCOLS):
            ports = None
            if addresses is None and kind in ("dnat", "snat"):
                self.note("accept")  # nothing is left to bind
                return
        self.note(kind, addresses, ports, options)

    @property
    def has_entry(self) -> bool:
        """True if the packet has a conntrack entry."""
        return self.tracked in TRACKED

    @property
    def _is_taken(self) -> bool:
        """Return whether ``socket`` finds a socket: that of the sender, or one that takes the packet."""
        return bool(self.sample.values[Field.TAKER] or self.sample.values[Field.SOCKET])

    @property
    def socket_mark(self) -> int | None:
        """The mark of the socket that takes the packet; None if there is none, or none that is full."""
        return self.sample.socket_mark if self._is_taken else None

    def get(self, field: Field) -> int | str | None:
        """Return the value of a field as tests see it; None if it is absent."""
        sample = self.sample
        if field.is_connection:
            if not self.has_entry:
                return None
            return self.connmark if field is Field.CT_MARK else sample.values[field]
        proto = sample.number(Field.L4PROTO)
        match field:
            case Field.CT_HELPER:
                return sample.values[field] if self.has_entry and sample.values[field] else None
            case Field.SOCKET_UID | Field.SOCKET_GID if not sample.owned:
                return None
            case Field.TAKER_WILDCARD if sample.values[Field.SOCKET] and not sample.owned:
                return 1
            case Field.SOCKET_UID | Field.SOCKET_GID | Field.SOCKET_CLASS:
                return sample.values[field] if sample.values[Field.SOCKET] else None
            case Field.TAKER:
                return int(self._is_taken)
            case Field.TAKER_WILDCARD if sample.socket_mark is None:
                return None
            case Field.TAKER_WILDCARD | Field.TAKER_TRANSPARENT:
                return sample.values[field] if self._is_taken else None
            case _ if field in IPSEC_STATES:
                return sample.values[field] if int(field.text.split(".")[2]) < sample.states else None
            case Field.TOS:
                return self.tos
            case Field.TTL:
                return self.ttl
            case Field.MARK:
                return self.mark
            case Field.CT_STATE:
                return self.tracked
            case Field.SPORT | Field.DPORT:
                return None if sample.fragment or proto not in PORT_PROTOCOLS else sample.values[field]
            case Field.ICMP_TYPE | Field.ICMP_CODE:
                if sample.fragment or proto != _ICMP[sample.family]:
                    return None
                both = sample.number(Field.SPORT)
                return both >> 8 if field is Field.ICMP_TYPE else both & 0xFF
            case Field.DCCP_TYPE:
                return None if sample.fragment or proto != Protocol.DCCP else sample.values[field]
            case Field.SCTP_CHUNKS:
                return None if sample.fragment or proto != Protocol.SCTP else sample.values[field]
            case Field.TCP_FLAGS | Field.TCP_OPTIONS:
                value = self.flags if field is Field.TCP_FLAGS else sample.values[field]
                return None if sample.fragment or proto != Protocol.TCP else value
            case Field.ESP_SPI | Field.AH_SPI | Field.IPCOMP_CPI:
                lacks = sample.fragment or proto != INDEX_PROTOCOLS[field]
                return None if lacks else sample.values[field]
            case Field.AH_LENGTH | Field.AH_RESERVED:
                lacks = sample.fragment or proto != INDEX_PROTOCOLS[Field.AH_SPI]
                return None if lacks else sample.values[field]
            case Field.TCP_MSS:
                lacks = sample.fragment or proto != Protocol.TCP or not sample.extended
                return None if lacks else sample.values[field]
            case _ if field in REVERSE_PATHS:
                return int(sample.leads_back(field))
            case Field.BRIDGED:
                return int(sample.kind == "bridge")
            case Field.ETHER_SADDR:
                return sample.values[field] if sample.ether else None
            case Field.CLOCK_MONTHDAY | Field.CLOCK_MONTHDAY_BEFORE:
                return clock_value(field, sample.number(Field.CLOCK))
            case _ if field in _EXTENSION_OF:
                if not sample.extended or _EXTENSION_OF[field] == sample.lacking:
                    return None
                if field is Field.ROUTING_IN_ORDER:
                    return int(sample.number(Field.ROUTING_LEFT) <= sample.number(Field.ROUTING_LAST))
                return sample.values[field]
            case _ if field.name.startswith("FIB_"):
                return sample.address_type(field)
            case _:
                return sample.values[field]

    def has_seen(self, name: str, timeout: int | None, key: bytes, lists: tuple[str, ...]) -> bool:
        """Return whether an address is in a list, added at most ``timeout`` seconds ago."""
        if (name, timeout, key) in self.listed:
            return self.listed[name, timeout, key]
        age = self.sample.ages[lists.index(name) % len(self.sample.ages)]
        return age != NEVER_SEEN and (timeout is None or age < timeout)
