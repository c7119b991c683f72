"""Tests as C conditions over ``struct pkt``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, assert_never

from translate.bpf.chains.code import NO_NEEDS, Condition, Feature, Needs
from translate.bpf.chains.context import Context
from translate.bpf.chains.words import words_condition
from translate.bpf.layout.tables import RuntimePart
from translate.bpf.refusals import CannotExpress
from translate.ir import (
    ACCOUNTS,
    IPSEC_STATES,
    REVERSE_PATHS,
    Account,
    AddressType,
    AnyOf,
    CgroupTest,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    HashLimit,
    Interval,
    Limit,
    Name,
    Nth,
    Quota,
    Random,
    Recent,
    SetDirection,
    SetTest,
    SetUpdate,
    Test,
    Value,
    WordTest,
    field_bits,
)
from translate.passes.recents import counted, inexact

__all__ = ["FIELDS", "conditions", "equals", "in_key", "literal", "present", "refuse_type"]


@dataclass(frozen=True, slots=True)
class _Column:
    """A field as an expression of C, and the condition under which the packet has it."""

    text: str
    present: str = ""
    needs: Needs = NO_NEEDS


_OF_SOCKETS: Final = (Field.SOCKET, Field.SOCKET_UID, Field.SOCKET_GID, Field.SOCKET_CLASS)
_TAKERS: Final = (Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT)
_IPSEC: Final = (
    *(Field.IPSEC_IN, Field.IPSEC_OUT, Field.IPSEC_IN_STATES, Field.IPSEC_OUT_STATES),
    *IPSEC_STATES,
)
_PORTS: Final = (Field.BRIDGED_ON, Field.BRIDGE_PORT_IN, Field.BRIDGE_PORT_OUT)
_ROUTING: Final = Needs(features=frozenset({Feature.ROUTING}))
_SEGMENTS: Final = Needs(features=frozenset({Feature.ROUTING, Feature.SEGMENTS}))
_OPTIONS: Final = Needs(features=frozenset({Feature.OPTIONS}))
_FRAGMENTS: Final = frozenset(field for field in Field if field.text.partition(".")[0] == "fragment")
_MOBILITY: Final = Needs(features=frozenset({Feature.MOBILITY}))
_DCCP: Final = Needs(features=frozenset({Feature.DCCP}))
_TCP_OPTIONS: Final = Needs(features=frozenset({Feature.TCP_OPTIONS}))
_AH: Final = Needs(features=frozenset({Feature.AH}))
_CLOCK: Final = Needs(features=frozenset({Feature.CLOCK}))
_DAY: Final = 86400
_THURSDAY: Final = 4
"""The day of the week of 1970-01-01."""
_SPI: Final = Needs(features=frozenset({Feature.INDEXES}))
_FRAME: Final = Needs(features=frozenset({Feature.FRAMES}))
_CT: Final = "p->has_ct"
_EUI64: Final = "((p->ether_saddr >> 24 << 40 | 0xfffe000000ULL | (p->ether_saddr & 0xffffff)) ^ 1ULL << 57)"

FIELDS: Final = {
    Field.SADDR: _Column("p->saddr"),
    Field.DADDR: _Column("p->daddr"),
    Field.FRAGMENT: _Column("p->fragment"),
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
            *_FRAGMENTS,
            Field.SCTP_CHUNKS,
            Field.REALM,
            Field.CT_HELPER,
            Field.CT_EXPIRES,
            *ACCOUNTS,
        )
    },
}
"""The column of every field. A test of a field that a packet lacks is false, even if it is negated."""


def literal(value: int) -> str:
    """Return a number in C, which has no literals wider than 64 bits."""
    if value >> 64:
        return f"ADDRESS({value >> 64:#x}, {value & (1 << 64) - 1:#x})"
    return f"{value:#x}"


def conditions(tests: Iterable[Test], context: Context) -> Condition:
    """Return one condition for all tests, in order. Raises CannotExpress."""
    several: list[Condition] = []
    counters = context.counters
    for test in tests:
        several.append(_test(test, replace(context, counters=counters)))
        counters += several[-1].needs.counters
    return Condition.every(several)


def present(fields: Iterable[Field]) -> tuple[str, ...]:
    """Return the conditions under which a packet has all ``fields``, each condition once."""
    return tuple(dict.fromkeys(FIELDS[f].present for f in fields if FIELDS[f].present))


def equals(field: Field, value: Value, family: Family) -> str:
    """Return the condition that a field, if present, has ``value``. Raises CannotExpress."""
    return _value_text(field, FIELDS[field].text, value, family)


def _test(test: Test, context: Context) -> Condition:
    match test:
        case FieldTest():
            return Condition(_field_test(test, context.family), FIELDS[test.field].needs)
        case AnyOf():
            some = " || ".join(f"({_field_test(part, context.family)})" for part in test.tests)
            needs = Needs.of_all(FIELDS[part.field].needs for part in test.tests)
            return Condition(f"!({some})" if test.negated else f"({some})", needs)
        case Random():
            sign = ">=" if test.negated else "<"
            return Condition(f"(bpf_get_prandom_u32() >> 1) {sign} {test.numerator:#x}")
        case Nth():
            due = f"count_up({context.counters}, {test.every:#x}) == {test.packet:#x}"
            return Condition(f"!({due})" if test.negated else due, _COUNTER)
        case Limit():
            number = context.buckets[test.bucket]
            return Condition(f"within_limit({number}, {test.interval}, {test.capacity})", _BUCKET)
        case HashLimit():
            return Condition(_hash_limit(test, context), _TABLE)
        case ConnectionLimit():
            raise CannotExpress("connlimit", "the tc program does not count the connections of an address")
        case Quota():
            call = f"within_quota({context.quotas[test.state]}, {test.size}ULL, p->length)"
            return Condition(f"!{call}" if test.negated else call, _QUOTA)
        case ConnLabel():
            raise CannotExpress("connlabel", "the tc program's connections have no labels")
        case ClusterShare():
            numbers = f"{test.total}, {test.nodes:#x}, {test.seed:#x}, {int(test.negated)}"
            return Condition(f"cluster_share(skb, p, {numbers})", _CLUSTER)
        case SetUpdate():
            raise CannotExpress("set-update", "the tc program does not change ipsets")
        case Account():
            return Condition("1")  # see untranslated_effects
        case CgroupTest():
            raise CannotExpress("socket-owner", "a tc program cannot read the cgroup of a socket")
        case WordTest():
            return words_condition(test)
        case Recent():
            return Condition(_recent(test, context), _RECENT)
        case SetTest():
            return context.sets[test.name].condition(test, context.family)
        case _:
            assert_never(test)


_COUNTER: Final = Needs(parts=frozenset({RuntimePart.NTH}), counters=1)
_BUCKET: Final = Needs(parts=frozenset({RuntimePart.LIMIT}))
_RECENT: Final = Needs(parts=frozenset({RuntimePart.RECENT}))


_QUOTA: Final = Needs(parts=frozenset({RuntimePart.QUOTA}))
_TABLE: Final = Needs(parts=frozenset({RuntimePart.HASHLIMIT}))
_CLUSTER: Final = Needs(parts=frozenset({RuntimePart.CLUSTER}), features=frozenset({Feature.FRAMES}))


def _hash_limit(test: HashLimit, context: Context) -> str:
    """Return the condition of a table. Its key and rate are those of its first test (``htable_find_get``)."""
    number, table = context.tables[test.name]
    parts = [f".table = {number}"]
    for field, name, mask in (
        (Field.SADDR, "saddr", table.source_mask),
        (Field.DADDR, "daddr", table.destination_mask),
    ):
        if field in table.key:
            parts.append(f".{name} = to_wire(p->{name} & {literal(mask)})")
    ports = (0xFFFF0000 if Field.SPORT in table.key else 0) | (0xFFFF if Field.DPORT in table.key else 0)
    if ports:
        parts.append(f".ports = hashed_ports(skb, p) & {ports:#x}")
    key = f"(struct hash_key){{ {', '.join(parts)} }}"
    times = f"{table.interval}ULL, {table.capacity}ULL, {table.expire * 1_000_000}ULL"
    return f"{'!' if test.above else ''}within_hash_limit({key}, {times})"


def _recent(test: Recent, context: Context) -> str:
    number, known = context.lists[test.name]
    if counted(test) is not None:
        reason = f"--hitcount {test.hitcount} counts packets, but the tc program stores only the last one"
        raise CannotExpress("recent-hitcount", reason)
    problem = inexact(test, known)
    if problem is not None:
        raise CannotExpress(*problem)
    address = "p->saddr" if test.side is SetDirection.SRC else "p->daddr"
    if test.mask != (1 << context.family.bits) - 1:
        address = f"{address} & {literal(test.mask)}"
    operation = f"{test.seconds or 0}, RECENT_{test.mode.name}, {int(test.negated)}"
    if not test.key:
        return f"recent({number}, {address}, {operation})"
    parts = [f".list = {number}", f".address = to_wire({address})"]
    parts += [f".{_RECENT_KEY[f]} = {in_key(f)}" for f in test.key]
    return f"recent_of((struct recent_key){{ {', '.join(parts)} }}, {operation})"


_RECENT_KEY: Final = {
    Field.SADDR: "saddr",
    Field.DADDR: "daddr",
    Field.L4PROTO: "proto",
    Field.SPORT: "sport",
    Field.DPORT: "dport",
}
"""The members of ``struct recent_key`` that distinguish the lists of one template (``Recent.key``)."""


def in_key(field: Field) -> str:
    """Return a field as a key of a map."""
    text = FIELDS[field].text
    return f"to_wire({text})" if field.is_address else text


def _field_test(test: FieldTest, family: Family) -> str:
    refuse_field(test.field, family)
    column = FIELDS[test.field]
    text = column.text
    if test.field is Field.TCP_OPTIONS:
        return f"{column.present} && {_bits(text, test)}"
    if test.mask is not None:
        if test.field.is_name:
            raise CannotExpress("interface-mask", "an interface name cannot be masked")
        text = f"({text} & {literal(test.mask)})"
    some = " || ".join(_value_text(test.field, text, value, family) for value in test.values)
    if len(test.values) > 1 or test.negated:
        some = f"{'!' if test.negated else ''}({some})"
    return f"{column.present} && {some}" if column.present else some


def _bits(text: str, test: FieldTest) -> str:
    """Return the test of a field that is an array of 64 bits each."""
    mask = (1 << field_bits(test.field, Family.IP)) - 1 if test.mask is None else test.mask
    some = " || ".join(
        " && ".join(
            f"({text}[{n}] & {part:#x}ULL) == {value.low >> _WORD * n & _WORD_MASK:#x}ULL"
            for n in range(mask.bit_length() // _WORD + 1)
            if (part := mask >> _WORD * n & _WORD_MASK)
        )
        for value in test.values
        if isinstance(value, Interval) and value.is_point
    )
    return f"{'!' if test.negated else ''}({some})"


_WORD: Final = 64
_WORD_MASK: Final = (1 << _WORD) - 1


def _value_text(field: Field, text: str, value: Value, family: Family) -> str:
    match value:
        case Name():
            return _name(text, value)
        case Interval():
            return _interval(field, text, value, family)
        case _:
            assert_never(value)


def _interval(field: Field, text: str, value: Interval, family: Family) -> str:
    refuse_type(field, value, family)
    if value.is_point:
        return f"{text} == {literal(value.low)}"
    if field.is_address:
        length = value.prefix_length(family.bits)
        if length == 0:
            return "1"
        if length is not None:
            mask = (1 << family.bits) - (1 << (family.bits - length))
            return f"({text} & {literal(mask)}) == {literal(value.low)}"
    if value.low == 0:
        return f"{text} <= {literal(value.high)}"
    return f"({text} >= {literal(value.low)} && {text} <= {literal(value.high)})"


def refuse_field(field: Field, family: Family) -> None:
    """Raise CannotExpress for a field that the tc program does not have."""
    if field in _OF_SOCKETS:
        reason = "a tc program cannot read the group of a socket, or whether the socket belongs to the kernel"
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
    if field in _FRAGMENTS:
        raise CannotExpress("fragments", "the tc program does not store the fields of a fragment header")
    if field in _PORTS:
        raise CannotExpress("bridge-port", "a tc program does not see the ports of a bridge")
    if field in _IPSEC:
        raise CannotExpress("ipsec", "a tc program does not see the policies of IPsec")
    if field in REVERSE_PATHS and family is Family.IP6:
        reason = "the tc program stores one route for each IPv6 prefix, but rpfilter tries all of them"
        raise CannotExpress("rpfilter6", reason)


def refuse_type(field: Field, value: Value, family: Family) -> None:
    """Raise CannotExpress for any IPv6 type but LOCAL: ``match_type6`` reads no other from the routes."""
    if field.name.startswith("FIB_") and family is Family.IP6 and value != _LOCAL:
        raise CannotExpress("addrtype6", "the tc program can look up only one type of IPv6 addresses, LOCAL")


_LOCAL: Final = Interval.point(AddressType.LOCAL)


def _name(text: str, value: Name) -> str:
    """Return the comparison of a name of 16 bytes, as two words like in ``ifname_compare_aligned``."""
    name = value.text.encode()
    length = len(name) if value.wildcard else 16
    parts = []
    for word in (0, 1):
        low, high = word * 8, word * 8 + 8
        want = name[low:high].ljust(8, b"\0")
        mask = bytes(0xFF if low + i < length else 0 for i in range(8))
        if not any(mask):
            continue
        word_text = f"{text}[{word}]"
        if not all(mask):
            word_text = f"({word_text} & NAME(0x{mask.hex()}))"
        parts.append(f"{word_text} == NAME(0x{want.hex()})")
    return f"({' && '.join(parts)})" if parts else "1"
