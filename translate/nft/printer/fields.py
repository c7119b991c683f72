"""Fields and their values in nft's spelling."""

from __future__ import annotations

from functools import cache
from typing import Final, assert_never

from translate.ir import (
    ROUTING_ADDRESSES,
    AddressType,
    ConnectionState,
    ConnectionStatus,
    Family,
    Field,
    Interval,
    Name,
    PacketType,
    Protocol,
    Value,
    field_bits,
    format_address,
    format_mac,
)
from translate.nft.timers import last_millisecond

__all__ = ["expression", "keys", "protocol", "status"]

_PROTOCOLS: Final[dict[int, str]] = {
    Protocol.ICMP: "icmp",
    Protocol.TCP: "tcp",
    Protocol.UDP: "udp",
    Protocol.DCCP: "dccp",
    Protocol.ICMPV6: "icmpv6",
    Protocol.SCTP: "sctp",
    Protocol.UDPLITE: "udplite",
}
_ADDRESS_TYPES: Final = frozenset(range(AddressType.UNSPEC, AddressType.THROW))
_FIB: Final = frozenset(field for field in Field if field.name.startswith("FIB_"))
_STATE_NAMES: Final[dict[int, str]] = {state: state.name.lower() for state in ConnectionState}
_PACKET_TYPES: Final[dict[int, str]] = {
    PacketType.UNICAST: "host",
    PacketType.BROADCAST: "broadcast",
    PacketType.MULTICAST: "multicast",
    PacketType.OTHERHOST: "other",
}
_SYMBOLS: Final = frozenset({Field.L4PROTO, Field.CT_PROTO, Field.CT_STATE, Field.CT_DIRECTION, *_FIB})


_COUNTS: Final = {"packets": "packets", "bytes": "bytes", "average": "avgpkt"}


@cache
def expression(field: Field, family: Family) -> str:
    """Return the nft expression that reads ``field``."""
    ip = family.value
    icmp = "icmp" if family is Family.IP else "icmpv6"
    match field:
        case Field.SADDR | Field.DADDR:
            return f"{ip} {field.name.lower()}"
        case Field.FRAGMENT:
            return "ip frag-off & 0x1fff"
        case Field.L4PROTO:
            return "meta l4proto"
        case Field.SPORT | Field.DPORT:
            return f"th {field.name.lower()}"
        case Field.ICMP_TYPE:
            return f"{icmp} type"
        case Field.ICMP_CODE:
            return f"{icmp} code"
        case Field.TCP_FLAGS:
            return "tcp flags"
        case Field.TCP_MSS:
            return "tcp option maxseg size"
        case Field.TCP_OPTIONS:
            return "tcp option"
        case Field.ESP_SPI:
            return "esp spi"
        case Field.AH_SPI:
            return "ah spi"
        case Field.AH_LENGTH:
            return "ah hdrlength"
        case Field.AH_RESERVED:
            return "ah reserved"
        case Field.DCCP_TYPE:
            return "dccp type"
        case Field.MH_TYPE:
            return "mh type"
        case Field.MH_NEXT:
            return "mh nexthdr"
        case Field.SCTP_CHUNKS:
            return "sctp chunk"
        case Field.REALM:
            return "rt classid"
        case Field.IPCOMP_CPI:
            return "comp cpi"
        case Field.LENGTH:
            return "meta length"
        case Field.TTL:
            return "ip ttl" if family is Family.IP else "ip6 hoplimit"
        case Field.TOS:
            return "@nh,8,8" if family is Family.IP else "@nh,0,16"
        case Field.ETHER_SADDR:
            return "ether saddr"
        case Field.DCCP_OPTIONS | Field.EUI64:
            raise AssertionError("refused: nftables compares no field with another")
        case Field.PACKET_TYPE:
            return "meta pkttype"
        case Field.ROUTING_TYPE:
            return "rt type"
        case Field.ROUTING_LEFT:
            return "rt seg-left"
        case Field.ROUTING_LENGTH:
            return "rt hdrlength"
        case Field.ROUTING_NEXT:
            return "rt nexthdr"
        case Field.ROUTING_LAST:
            return "srh last-entry"
        case Field.ROUTING_FLAGS:
            return "srh flags"
        case Field.ROUTING_TAG:
            return "srh tag"
        case Field.ROUTING_IN_ORDER:
            return "rt seg-left . srh last-entry"
        case Field.ROUTING_FIRST_ADDRESS:
            return "rt0 addr[1]"
        case Field.ROUTING_SECOND_ADDRESS:
            return "rt0 addr[2]"
        case Field.HOP_LENGTH:
            return "hbh hdrlength"
        case Field.DESTINATION_LENGTH:
            return "dst hdrlength"
        case Field.FRAGMENT_ID:
            return "frag id"
        case Field.FRAGMENT_OFFSET:
            return "frag frag-off"
        case Field.FRAGMENT_MORE:
            return "frag more-fragments"
        case Field.FRAGMENT_RESERVED:
            return "frag reserved"
        case Field.FRAGMENT_RESERVED2:
            return "frag reserved2"
        case Field.MARK:
            return "meta mark"
        case Field.CPU:
            return "meta cpu"
        case Field.IIF:
            return "iifname"
        case Field.OIF:
            return "oifname"
        case Field.IIF_GROUP:
            return "iifgroup"
        case Field.OIF_GROUP:
            return "oifgroup"
        case Field.CT_STATE:
            return "ct state"
        case Field.CT_STATUS:
            return "ct status"
        case Field.CT_MARK:
            return "ct mark"
        case Field.CT_DIRECTION:
            return "ct direction"
        case Field.CT_PROTO:
            return "ct original protocol"
        case Field.CT_ORIGINAL_SADDR:
            return f"ct original {ip} saddr"
        case Field.CT_ORIGINAL_DADDR:
            return f"ct original {ip} daddr"
        case Field.CT_REPLY_SADDR:
            return f"ct reply {ip} saddr"
        case Field.CT_REPLY_DADDR:
            return f"ct reply {ip} daddr"
        case Field.CT_ORIGINAL_SPORT:
            return "ct original proto-src"
        case Field.CT_ORIGINAL_DPORT:
            return "ct original proto-dst"
        case Field.CT_REPLY_SPORT:
            return "ct reply proto-src"
        case Field.CT_REPLY_DPORT:
            return "ct reply proto-dst"
        case Field.CT_HELPER:
            return "ct helper"
        case Field.CT_EXPIRES:
            return "ct expiration"
        case Field.CT_PACKETS | Field.CT_BYTES | Field.CT_AVERAGE:
            return f"ct {_COUNTS[field.text.removeprefix('ct.')]}"
        case Field.CT_ORIGINAL_PACKETS | Field.CT_ORIGINAL_BYTES | Field.CT_ORIGINAL_AVERAGE:
            return f"ct original {_COUNTS[field.text.removeprefix('ct.original.')]}"
        case Field.CT_REPLY_PACKETS | Field.CT_REPLY_BYTES | Field.CT_REPLY_AVERAGE:
            return f"ct reply {_COUNTS[field.text.removeprefix('ct.reply.')]}"
        case Field.FIB_SADDR_TYPE:
            return "fib saddr type"
        case Field.FIB_DADDR_TYPE:
            return "fib daddr type"
        case Field.FIB_SADDR_TYPE_IIF:
            return "fib saddr . iif type"
        case Field.FIB_DADDR_TYPE_IIF:
            return "fib daddr . iif type"
        case Field.FIB_SADDR_TYPE_OIF:
            return "fib saddr . oif type"
        case Field.FIB_DADDR_TYPE_OIF:
            return "fib daddr . oif type"
        case Field.REVERSE_PATH:
            return "fib saddr . iif oif"
        case Field.REVERSE_PATH_BY_MARK:
            return "fib saddr . mark . iif oif"
        case Field.REVERSE_ROUTE:
            return "fib saddr oif"
        case Field.REVERSE_ROUTE_BY_MARK:
            return "fib saddr . mark oif"
        case Field.BRIDGED:
            return "meta iifkind"
        case Field.SOCKET | Field.SOCKET_CLASS:
            return "meta cgroup"
        case Field.TAKER | Field.TAKER_TRANSPARENT:
            return "socket transparent"
        case Field.TAKER_WILDCARD:
            return "socket wildcard"
        case Field.IPSEC_IN:
            return "meta ipsec"
        case Field.IPSEC_OUT:
            return "rt ipsec"
        case Field.CLOCK:
            return "meta time"
        case Field.CLOCK_DAYTIME:
            return "meta hour"
        case Field.CLOCK_WEEKDAY:
            return "meta day"
        case Field.CLOCK_MONTHDAY | Field.CLOCK_MONTHDAY_BEFORE:
            raise AssertionError("written as a test of the clock")
        case (
            Field.IPSEC_IN_0_REQID
            | Field.IPSEC_IN_0_SPI
            | Field.IPSEC_IN_1_REQID
            | Field.IPSEC_IN_1_SPI
            | Field.IPSEC_IN_2_REQID
            | Field.IPSEC_IN_2_SPI
            | Field.IPSEC_IN_3_REQID
            | Field.IPSEC_IN_3_SPI
            | Field.IPSEC_IN_4_REQID
            | Field.IPSEC_IN_4_SPI
            | Field.IPSEC_IN_5_REQID
            | Field.IPSEC_IN_5_SPI
            | Field.IPSEC_OUT_0_REQID
            | Field.IPSEC_OUT_0_SPI
            | Field.IPSEC_OUT_1_REQID
            | Field.IPSEC_OUT_1_SPI
            | Field.IPSEC_OUT_2_REQID
            | Field.IPSEC_OUT_2_SPI
            | Field.IPSEC_OUT_3_REQID
            | Field.IPSEC_OUT_3_SPI
            | Field.IPSEC_OUT_4_REQID
            | Field.IPSEC_OUT_4_SPI
            | Field.IPSEC_OUT_5_REQID
            | Field.IPSEC_OUT_5_SPI
        ):
            _, direction, number, key = field.text.split(".")
            return f"ipsec {direction} spnum {number} {key}"
        case Field.BRIDGED_ON | Field.BRIDGE_PORT_IN | Field.BRIDGE_PORT_OUT:
            raise AssertionError("refused: nftables does not see the ports of a bridge")
        case Field.IPSEC_IN_STATES | Field.IPSEC_OUT_STATES:
            raise AssertionError("refused: nftables does not compare all states of IPsec")
        case Field.SOCKET_UID:
            return "meta skuid"
        case Field.SOCKET_GID:
            return "meta skgid"
        case _:
            assert_never(field)


def protocol(number: int) -> str:
    """Return a transport protocol in nft's spelling."""
    return _PROTOCOLS.get(number) or str(number)


def status(bits: int) -> str:
    """Return status bits of a connection: one by its name, several as a number."""
    named_bits = [(bit, name) for bit, name in _STATUS_NAMES.items() if bits & bit]
    if bits and bits == sum(bit for bit, _ in named_bits) and len(named_bits) == 1:
        return named_bits[0][1]
    return hex(bits)


_STATUS_NAMES: Final = {
    int(ConnectionStatus.EXPECTED): "expected",
    int(ConnectionStatus.SEEN_REPLY): "seen-reply",
    int(ConnectionStatus.ASSURED): "assured",
    int(ConnectionStatus.CONFIRMED): "confirmed",
    int(ConnectionStatus.SNAT): "snat",
    int(ConnectionStatus.DNAT): "dnat",
}


def keys(field: Field, value: Value, family: Family) -> list[str]:
    """Return the keys for ``value``: one, or one for each symbol of an unordered type."""
    if field in _SYMBOLS and isinstance(value, Interval):
        return [_number(field, n, family) for n in range(value.low, value.high + 1)]
    return [_key(field, value, family)]


def _key(field: Field, value: Value, family: Family) -> str:
    """Return one value of ``field`` in nft's spelling."""
    if isinstance(value, Name):
        return f'"{value.text}{"*" if value.wildcard else ""}"'
    if field is Field.CT_EXPIRES:
        return f"{value.low}s-{last_millisecond(value.high)}"
    if value.is_point:
        return _number(field, value.low, family)
    if field.is_address and field not in ROUTING_ADDRESSES:  # nft loads the bytes of a prefix only
        length = value.prefix_length(field_bits(field, family))
        if length is not None:
            return f"{format_address(family, value.low)}/{length}"
    return f"{_number(field, value.low, family)}-{_number(field, value.high, family)}"


def _number(field: Field, value: int, family: Family) -> str:
    if field.is_address:
        return format_address(family, value)
    if field is Field.L4PROTO or field is Field.CT_PROTO:
        return protocol(value)
    if field is Field.CT_STATE and value in _STATE_NAMES:
        return _STATE_NAMES[value]
    if field is Field.CT_STATUS:
        return status(value)
    if field is Field.CT_DIRECTION:
        return ("original", "reply")[value]
    if field is Field.ETHER_SADDR:
        return format_mac(value)
    if field is Field.PACKET_TYPE and value in _PACKET_TYPES:
        return _PACKET_TYPES[value]
    if field.is_hexadecimal:
        return hex(value)
    if field in _FIB and value in _ADDRESS_TYPES:
        return AddressType(value).name.lower()
    return str(value)
