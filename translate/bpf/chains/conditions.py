"""Tests as C conditions over ``struct pkt``."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, assert_never

from translate.bpf.chains.bytecode import bytecode_condition
from translate.bpf.chains.code import Condition, Declaration, Feature, Needs
from translate.bpf.chains.context import Context
from translate.bpf.chains.fields import CGROUP, FIELDS, needs_of, refuse_field, refuse_type
from translate.bpf.chains.headeroptions import options_condition
from translate.bpf.chains.numbers import literal
from translate.bpf.chains.words import words_condition
from translate.bpf.layout.tables import RuntimePart
from translate.bpf.refusals import CannotExpress
from translate.dataclass import replace
from translate.ir import (
    Account,
    AnyOf,
    BytecodeTest,
    CgroupTest,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    HashLimit,
    HeaderOptions,
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

MOST_COUNTED: Final = 120
"""The greatest limit of ``-m connlimit`` in a tc program."""

__all__ = ["MOST_COUNTED", "conditions", "equals", "in_key", "present"]


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
            return Condition(_field_test(test, context.family), needs_of(test.field, context.family))
        case AnyOf():
            some = " || ".join(f"({_field_test(part, context.family)})" for part in test.tests)
            needs = Needs.of_all(needs_of(part.field, context.family) for part in test.tests)
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
            return Condition(_hash_limit(test, context), _WINDOW if test.window else _TABLE)
        case ConnectionLimit():
            return Condition(_connection_limit(test, context), _COUNTS)
        case Quota():
            call = f"within_quota({context.quotas[test.state]}, {test.size}ULL, p->length)"
            return Condition(f"!{call}" if test.negated else call, _QUOTA)
        case ConnLabel():
            raise CannotExpress("connlabel", "the tc program's connections have no labels")
        case ClusterShare():
            numbers = f"{test.total}, {test.nodes:#x}, {test.seed:#x}, {int(test.negated)}"
            return Condition(f"cluster_share(skb, p, {numbers})", _CLUSTER)
        case SetUpdate():
            return context.sets[test.name].change(test, context.family)
        case Account():
            return Condition("1")  # see untranslated_effects
        case CgroupTest():
            return _below_cgroup(test, context)
        case WordTest():
            return words_condition(test)
        case HeaderOptions():
            return options_condition(test)
        case BytecodeTest():
            return bytecode_condition(test)
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
_COUNTS: Final = Needs(parts=frozenset({RuntimePart.CONNLIMIT}))
_WINDOW: Final = Needs(parts=frozenset({RuntimePart.HASHLIMIT, RuntimePart.HASHWINDOW}))
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
    if bool(test.window) is not bool(table.window):
        reason = f"another rule of the table {test.name} counts in another way, which mixes up their numbers"
        raise CannotExpress("hashlimit-window", reason)
    if table.window:
        numbers = f"{table.window}, {table.rate}, {table.burst}ULL, {table.expire * 1_000_000}ULL"
        return f"{'!' if test.above else ''}within_window({key}, {numbers})"
    times = f"{table.interval}ULL, {table.capacity}ULL, {table.expire * 1_000_000}ULL"
    return f"{'!' if test.above else ''}within_hash_limit({key}, {times})"


def _connection_limit(test: ConnectionLimit, context: Context) -> str:
    """Return an expression that ends the function if no connection counts (``hotdrop``)."""
    if test.limit > MOST_COUNTED:
        reason = f"the tc program counts {MOST_COUNTED} connections of an address at most, not {test.limit}"
        raise CannotExpress("connlimit", reason)
    address = "p->saddr" if test.side is SetDirection.SRC else "p->daddr"
    if test.mask != (1 << context.family.bits) - 1:
        address = f"{address} & {literal(test.mask)}"
    count = f"u32 number = count_connections(p, {context.counts[test.state]}, {address});"
    holds = f"number {'>' if test.above else '<='} {test.limit:#x};"
    return f"({{ {count} if (!number) return DROP; {holds} }})"


def _below_cgroup(test: CgroupTest, context: Context) -> Condition:
    """Return the test of a cgroup. Its path is in the text, which is all that decides about a new program."""
    number, depth = context.cgroups[test.path], test.path.count("/") + 1
    digest = sha256(test.path.encode("utf-8", "surrogateescape")).hexdigest()
    declared = Declaration((f"/* cgroup {number}: the path with the SHA-256 {digest} */",))
    sign = "!" if test.negated else ""
    text = f"{sign}is_below_cgroup(skb, p, {number}, {depth})"
    return Condition(text, Needs.of_all((CGROUP, Needs(declarations=(declared,)))))


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
    refuse_field(test.field)
    column = FIELDS[test.field]
    text = column.text
    if test.field in (Field.TCP_OPTIONS, Field.DCCP_OPTIONS):
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


_ANY: Final = (1 << 32) - 1
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
    if value.low == 0 and value.high == _ANY:
        return "1"
    if value.low == 0:
        return f"{text} <= {literal(value.high)}"
    return f"({text} >= {literal(value.low)} && {text} <= {literal(value.high)})"


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
