"""Fields as C expressions over ``struct pkt``, and those that the tc program does not have."""

from __future__ import annotations

from typing import Final

from translate.bpf.chains.code import NO_NEEDS, Feature, Needs
from translate.bpf.layout.tables import RuntimePart
from translate.bpf.refusals import CannotExpress
from translate.dataclass import dataclass
from translate.ir import ACCOUNTS, IPSEC_STATES, REVERSE_PATHS, AddressType, Family, Field, Interval, Value

__all__ = ["CGROUP", "FIELDS", "needs_of", "refuse_field", "refuse_type"]


@dataclass(frozen=True, slots=True)
class _Column:
    """A field as an expression of C, and the condition under which the packet has it."""

    text: str
    present: str = ""
    needs: Needs = NO_NEEDS


_OF_SOCKETS: Final = (Field.SOCKET, Field.SOCKET_UID, Field.SOCKET_GID)
_TAKERS: Final = (Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT)
_IPSEC: Final = (
    *(Field.IPSEC_IN, Field.IPSEC_OUT, Field.IPSEC_IN_STATES, Field.IPSEC_OUT_STATES),
    *IPSEC_STATES,
)
_PORTS: Final = (Field.BRIDGED_ON, Field.BRIDGE_PORT_IN, Field.BRIDGE_PORT_OUT)
_ROUTING: Final = Needs(features=frozenset({Feature.ROUTING}))
_SEGMENTS: Final = Needs(features=frozenset({Feature.ROUTING, Feature.SEGMENTS}))
_OPTIONS: Final = Needs(features=frozenset({Feature.OPTIONS}))
_FRAGMENTS: Final = Needs(features=frozenset({Feature.FRAGMENTS}))
_MOBILITY: Final = Needs(features=frozenset({Feature.MOBILITY}))
_DCCP: Final = Needs(features=frozenset({Feature.DCCP}))
_DCCP_OPTIONS: Final = Needs(features=frozenset({Feature.DCCP, Feature.DCCP_OPTIONS}))
_TCP_OPTIONS: Final = Needs(features=frozenset({Feature.TCP_OPTIONS}))
_AH: Final = Needs(features=frozenset({Feature.AH}))
_CLOCK: Final = Needs(features=frozenset({Feature.CLOCK}))
_DAY: Final = 86400
_THURSDAY: Final = 4
"""The day of the week of 1970-01-01."""
_SPI: Final = Needs(features=frozenset({Feature.INDEXES}))
_FRAME: Final = Needs(features=frozenset({Feature.FRAMES}))
CGROUP: Final = Needs(parts=frozenset({RuntimePart.CGROUP}))
"""The needs of a test of a socket's cgroup."""
_WAYS_BACK: Final = Needs(parts=frozenset({RuntimePart.WAYS_BACK}))
_CT: Final = "p->has_ct"
_EUI64: Final = "((p->ether_saddr >> 24 << 40 | 0xfffe000000ULL | (p->ether_saddr & 0xffffff)) ^ 1ULL << 57)"

FIELDS: Final = {
    Field.SADDR: _Column("p->saddr"),
    Field.DADDR: _Column("p->daddr"),
    Field.FRAGMENT: _Column("(p->fragment == LATER_FRAGMENT)"),
    Field.L4PROTO: _Column("p->proto"),
    Field.SPORT: _Column("p->sport", "p->has_ports"),
    Field.DPORT: _Column("p->dport", "p->has_ports"),
    Field.ICMP_TYPE: _Column("p->icmp_type", "p->has_icmp"),
    Field.ICMP_CODE: _Column("p->icmp_code", "p->has_icmp"),
    Field.TCP_FLAGS: _Column("p->tcp_flags", "p->has_tcp"),
    Field.ESP_SPI: _Column("p->spi", "p->spi_of == PROTO_ESP", _SPI),
    Field.AH_SPI: _Column("p->ah_spi", "p->has_ah", _AH),
    Field.AH_LENGTH: _Column("p->ah_length", "p->has_ah", _AH),
    Field.AH_RESERVED: _Column("p->ah_reserved", "p->has_ah", _AH),
    Field.IPCOMP_CPI: _Column("p->spi", "p->spi_of == PROTO_IPCOMP", _SPI),
    Field.DCCP_TYPE: _Column("p->dccp_type", "p->has_dccp", _DCCP),
    Field.DCCP_OPTIONS: _Column("p->dccp_options", "p->has_dccp_options", _DCCP_OPTIONS),
    Field.MH_TYPE: _Column("p->mobility_type", "p->has_mobility", _MOBILITY),
    Field.MH_NEXT: _Column("p->mobility_next", "p->has_mobility", _MOBILITY),
    Field.TCP_MSS: _Column("p->mss", "p->mss_at", _TCP_OPTIONS),
    Field.TCP_OPTIONS: _Column("p->options", "p->has_options", _TCP_OPTIONS),
    Field.LENGTH: _Column("p->length"),
    Field.TTL: _Column("p->ttl"),
    Field.TOS: _Column("p->tos"),
    Field.ETHER_SADDR: _Column("p->ether_saddr", "p->has_ether", _FRAME),
    Field.EUI64: _Column(f"((u64)p->saddr == {_EUI64})", "p->has_ether", _FRAME),
    Field.PACKET_TYPE: _Column("p->type", needs=_FRAME),
    Field.ROUTING_TYPE: _Column("p->routing_type", "p->has_routing", _ROUTING),
    Field.ROUTING_LEFT: _Column("p->routing_left", "p->has_routing", _ROUTING),
    Field.ROUTING_LENGTH: _Column("p->routing_length", "p->has_routing", _ROUTING),
    Field.ROUTING_NEXT: _Column("p->routing[0]", "p->routing_size >= 8", _SEGMENTS),
    Field.ROUTING_LAST: _Column("p->routing[4]", "p->routing_size >= 8", _SEGMENTS),
    Field.ROUTING_FLAGS: _Column("p->routing[5]", "p->routing_size >= 8", _SEGMENTS),
    Field.ROUTING_TAG: _Column("(p->routing[6] << 8 | p->routing[7])", "p->routing_size >= 8", _SEGMENTS),
    Field.ROUTING_IN_ORDER: _Column("(p->routing_left <= p->routing[4])", "p->routing_size >= 8", _SEGMENTS),
    Field.ROUTING_FIRST_ADDRESS: _Column("read_address(p->routing + 8)", "p->routing_size >= 24", _SEGMENTS),
    Field.ROUTING_SECOND_ADDRESS: _Column(
        "read_address(p->routing + 24)", "p->routing_size >= 40", _SEGMENTS
    ),
    Field.HOP_LENGTH: _Column("p->hop_length", "p->has_hop", _OPTIONS),
    Field.DESTINATION_LENGTH: _Column("p->destination_length", "p->has_destination", _OPTIONS),
    Field.FRAGMENT_ID: _Column("p->fragment_id", "p->fragment_at", _FRAGMENTS),
    Field.FRAGMENT_OFFSET: _Column("(p->fragment_word >> 3)", "p->fragment_at", _FRAGMENTS),
    Field.FRAGMENT_MORE: _Column("(p->fragment_word & 1)", "p->fragment_at", _FRAGMENTS),
    Field.FRAGMENT_RESERVED: _Column("p->fragment_reserved", "p->fragment_at", _FRAGMENTS),
    Field.FRAGMENT_RESERVED2: _Column("(p->fragment_word >> 1 & 3)", "p->fragment_at", _FRAGMENTS),
    Field.SOCKET_CLASS: _Column("socket_class(skb, p)", "has_socket(skb, p)", CGROUP),
    Field.MARK: _Column("p->mark"),
    Field.CPU: _Column("bpf_get_smp_processor_id()"),
    Field.IIF: _Column("p->in"),
    Field.OIF: _Column("p->out"),
    Field.IIF_GROUP: _Column("device_group(p->iif)", "p->iif"),
    Field.OIF_GROUP: _Column("device_group(p->oif)", "p->oif"),
    Field.CLOCK: _Column("p->clock", needs=_CLOCK),
    Field.CLOCK_DAYTIME: _Column(f"(p->clock % {_DAY})", needs=_CLOCK),
    Field.CLOCK_WEEKDAY: _Column(f"((p->clock / {_DAY} + {_THURSDAY}) % 7)", needs=_CLOCK),
    Field.CLOCK_MONTHDAY: _Column(f"day_of_month(p->clock / {_DAY})", needs=_CLOCK),
    Field.CLOCK_MONTHDAY_BEFORE: _Column(f"day_of_month(p->clock / {_DAY} - 1)", needs=_CLOCK),
    Field.CT_STATE: _Column("p->ct_state"),
    Field.CT_STATUS: _Column("p->conn.status", _CT),
    Field.CT_MARK: _Column("p->conn.mark", _CT),
    Field.CT_DIRECTION: _Column("p->dir", _CT),
    Field.CT_PROTO: _Column("p->conn.orig.proto", _CT),
    Field.CT_ORIGINAL_SADDR: _Column("p->conn.orig.src", _CT),
    Field.CT_ORIGINAL_DADDR: _Column("p->conn.orig.dst", _CT),
    Field.CT_ORIGINAL_SPORT: _Column("p->conn.orig.sport", _CT),
    Field.CT_ORIGINAL_DPORT: _Column("p->conn.orig.dport", _CT),
    Field.CT_REPLY_SADDR: _Column("p->conn.reply.src", _CT),
    Field.CT_REPLY_DADDR: _Column("p->conn.reply.dst", _CT),
    Field.CT_REPLY_SPORT: _Column("p->conn.reply.sport", _CT),
    Field.CT_REPLY_DPORT: _Column("p->conn.reply.dport", _CT),
    Field.FIB_SADDR_TYPE: _Column("address_type(p->saddr, 0)"),
    Field.FIB_DADDR_TYPE: _Column("address_type(p->daddr, 0)"),
    Field.FIB_SADDR_TYPE_IIF: _Column("address_type(p->saddr, p->iif)"),
    Field.FIB_DADDR_TYPE_IIF: _Column("address_type(p->daddr, p->iif)"),
    Field.FIB_SADDR_TYPE_OIF: _Column("address_type(p->saddr, p->oif)"),
    Field.FIB_DADDR_TYPE_OIF: _Column("address_type(p->daddr, p->oif)"),
    # The mark selects no route: check_routing refuses nodes whose routing rules could decide this lookup.
    Field.REVERSE_PATH: _Column("reverse_path(p)"),
    Field.REVERSE_PATH_BY_MARK: _Column("reverse_path(p)"),
    Field.REVERSE_ROUTE: _Column("reverse_route(p)"),
    Field.REVERSE_ROUTE_BY_MARK: _Column("reverse_route(p)"),
    Field.BRIDGED: _Column("from_bridge(p)"),
    **{
        field: _Column("")
        for field in (
            *_OF_SOCKETS,
            *_TAKERS,
            *_IPSEC,
            *_PORTS,
            Field.SCTP_CHUNKS,
            Field.REALM,
            Field.CT_HELPER,
            Field.CT_EXPIRES,
            *ACCOUNTS,
        )
    },
}
"""The column of every field. A test of a field that a packet lacks is false, even if it is negated."""


def needs_of(field: Field, family: Family) -> Needs:
    """Return what the expression of a field needs from the rest of the program."""
    return _WAYS_BACK if field in REVERSE_PATHS and family is Family.IP6 else FIELDS[field].needs


def refuse_field(field: Field) -> None:
    """Raise CannotExpress for a field that the tc program does not have."""
    if field in _OF_SOCKETS:
        reason = "a tc program reads the user that opened a socket, not the user and group of its file"
        raise CannotExpress("socket-owner", reason)
    if field in _TAKERS:
        reason = "a tc program cannot read the address that a socket is bound to"
        raise CannotExpress("socket-lookup", reason)
    if field is Field.SCTP_CHUNKS:
        raise CannotExpress("sctp-chunks", "the tc program does not read the chunks of SCTP")
    if field is Field.REALM:
        raise CannotExpress("realm", "a tc program cannot read the realm of a route that is not chosen yet")
    if field in ACCOUNTS:
        raise CannotExpress("connbytes", "the tc program does not count the packets of a connection")
    if field is Field.CT_EXPIRES:
        raise CannotExpress("ct-expire", "the tc program's connections have timers of their own")
    if field is Field.CT_HELPER:
        raise CannotExpress("helper", "the tc program has no helpers, so it expects no connections")
    if field in _PORTS:
        raise CannotExpress("bridge-port", "a tc program does not see the ports of a bridge")
    if field in _IPSEC:
        raise CannotExpress("ipsec", "a tc program does not see the policies of IPsec")


def refuse_type(field: Field, value: Value, family: Family) -> None:
    """Raise CannotExpress for any IPv6 type but LOCAL: ``match_type6`` reads no other from the routes."""
    if field.name.startswith("FIB_") and family is Family.IP6 and value != _LOCAL:
        raise CannotExpress("addrtype6", "the tc program can look up only one type of IPv6 addresses, LOCAL")


_LOCAL: Final = Interval.point(AddressType.LOCAL)
