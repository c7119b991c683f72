"""Tests as text: ``ip.daddr == 10.0.0.0/8``, ``any(…)``, ``random 1073741824/2^31``, ``recent …``."""

from __future__ import annotations

from typing import assert_never

from translate.ir import (
    RANDOM_RANGE,
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
    Limit,
    Nth,
    Quota,
    Random,
    Recent,
    RecentMode,
    SetDirection,
    SetTest,
    SetUpdate,
    Test,
    Value,
    WordError,
    WordTest,
    read_words,
    words_text,
)
from translate.ir.bytecode import bytecode_text
from translate.irtext.lexer import Cursor, TextError, number, quoted, word
from translate.irtext.packettests import format_options, take_bytecode, take_options
from translate.irtext.values import format_number, format_value, take_field, take_number, take_value

__all__ = ["format_fields", "format_test", "take_fields", "take_share", "take_test"]


def format_test(test: Test, family: Family) -> str:
    """Return the text of a test."""
    match test:
        case FieldTest():
            return _field_test(test, family)
        case AnyOf():
            parts = ", ".join(_field_test(part, family) for part in test.tests)
            return f"{_not(test.negated)}any({parts})"
        case Random():
            return f"{_not(test.negated)}random {test.numerator}/2^31"
        case Nth():
            return f"{_not(test.negated)}nth {test.packet} every {test.every}"
        case Limit():
            bucket = f" bucket {word(test.bucket)}" if test.bucket else ""
            return f"limit interval {test.interval} capacity {test.capacity}{bucket}"
        case HashLimit():
            return _hash_limit(test, family)
        case ConnectionLimit():
            return _connection_limit(test, family)
        case Quota():
            state = f" state {word(test.state)}" if test.state else ""
            return f"{_not(test.negated)}quota {test.size}{state}"
        case SetTest():
            of = f"{word(test.name)}({', '.join(test.directions)})"
            words = f"{' nomatch' if test.nomatch else ''}{' filled' if test.filled else ''}"
            return f"{_not(test.negated)}set {of}{words}"
        case SetUpdate():
            return _set_update(test)
        case ConnLabel():
            return f"{_not(test.negated)}label {test.number}{' add' if test.add else ''}"
        case ClusterShare():
            return f"{_not(test.negated)}cluster {test.nodes:#x} of {test.total} seed {test.seed:#x}"
        case Recent():
            return f"{_not(test.negated)}{_recent(test, family)}"
        case Account():
            return f"account {word(test.name)}"
        case CgroupTest():
            return f"{_not(test.negated)}cgroup {quoted(test.path)}"
        case WordTest():
            return f"{_not(test.negated)}words {quoted(words_text(test.words))}"
        case HeaderOptions():
            return format_options(test)
        case BytecodeTest():
            return f"bytecode {quoted(bytecode_text(test.program))}"
        case _:
            assert_never(test)


def format_fields(fields: tuple[Field, ...]) -> str:
    """Return the text of the fields of a key: ``ip.daddr . l4.dport``."""
    return " . ".join(field.text for field in fields)


def _not(negated: bool) -> str:
    return "not " if negated else ""


def _field_test(test: FieldTest, family: Family) -> str:
    text = test.field.text
    if test.mask is not None:
        text += f" & {format_number(test.field, test.mask, family)}"
    values = ", ".join(format_value(test.field, value, family) for value in test.values)
    if len(test.values) != 1:
        values = f"{{{values}}}"
    return f"{text} {'!=' if test.negated else '=='} {values}"


def _recent(test: Recent, family: Family) -> str:
    mask = format_number(Field.SADDR, test.mask, family)
    text = f"recent {test.mode} {word(test.name)} {test.side} mask {mask}"
    if test.seconds is not None:
        text += f" seconds {test.seconds}"
    if test.hitcount is not None:
        text += f" hitcount {test.hitcount}"
    text += " reap" if test.reap else ""
    text += " rttl" if test.rttl else ""
    return f"{text} per {format_fields(test.key)}" if test.key else text


def take_test(cursor: Cursor, family: Family) -> Test:
    """Read a test. Raises TextError."""
    negated = cursor.take("not")
    if cursor.take("any"):
        cursor.expect("(")
        tests: list[FieldTest] = []
        while not cursor.take(")"):
            if tests:
                cursor.expect(",")
            tests.append(_take_field_test(cursor, family))
        return AnyOf(tests=tuple(tests), negated=negated)
    if cursor.take("random"):
        return Random(numerator=take_share(cursor), negated=negated)
    if cursor.take("nth"):
        packet = cursor.number("the number of a packet")
        cursor.expect("every")
        return Nth(every=cursor.number("a number of packets"), packet=packet, negated=negated)
    if cursor.take("set"):
        return _take_set_test(cursor, negated=negated)
    if cursor.take("recent"):
        return _take_recent(cursor, family, negated=negated)
    if cursor.take("quota"):
        size = cursor.number("bytes")
        state = cursor.next("the name of a count").text if cursor.take("state") else ""
        return Quota(size=size, negated=negated, state=state)
    if cursor.take("cgroup"):
        return CgroupTest(path=cursor.next("the path of a cgroup").text, negated=negated)
    if cursor.take("bytecode"):
        return take_bytecode(cursor)
    if cursor.take("options"):
        return take_options(cursor)
    if cursor.take("words"):
        return _take_words(cursor, negated=negated)
    if cursor.take("label"):
        number_ = cursor.number("the number of a label")
        return ConnLabel(number=number_, add=cursor.take("add"), negated=negated)
    if cursor.take("cluster"):
        nodes = cursor.number("nodes")
        cursor.expect("of")
        total = cursor.number("a number of nodes")
        cursor.expect("seed")
        return ClusterShare(total=total, nodes=nodes, seed=cursor.number("a seed"), negated=negated)
    if negated:
        raise cursor.fault("expected any, random, nth, set, label, cluster, cgroup, recent, quota or words")
    if cursor.take("add"):
        return _take_set_update(cursor, delete=False)
    if cursor.take("delete"):
        return _take_set_update(cursor, delete=True)
    if cursor.take("account"):
        return Account(name=cursor.next("the name of an object").text)
    if cursor.take("limit"):
        return _take_limit(cursor)
    if cursor.take("hashlimit"):
        return _take_hash_limit(cursor, family)
    if cursor.take("connections"):
        return _take_connection_limit(cursor, family)
    return _take_field_test(cursor, family)


def take_fields(cursor: Cursor) -> tuple[Field, ...]:
    """Read the fields of a key. Raises TextError."""
    fields = [take_field(cursor)]
    while cursor.take("."):
        fields.append(take_field(cursor))
    return tuple(fields)


def take_share(cursor: Cursor) -> int:
    """Read a share such as ``1073741824/2^31`` and return its numerator. Raises TextError."""
    token = cursor.next("a share such as 1073741824/2^31")
    share, _, whole = token.text.partition("/")
    if whole != "2^31":
        raise TextError(token.column, f"expected a share such as 1073741824/2^31, found {token.text!r}")
    return number(share, token.column, "a number", most=RANDOM_RANGE)


def _take_field_test(cursor: Cursor, family: Family) -> FieldTest:
    field = take_field(cursor)
    mask = take_number(cursor, field, family) if not field.is_name and cursor.take("&") else None
    negated = cursor.take("!=")
    if not negated:
        cursor.expect("==")
    if not cursor.take("{"):
        return FieldTest(field=field, values=(take_value(cursor, field, family),), mask=mask, negated=negated)
    values: list[Value] = []
    while not cursor.take("}"):
        if values:
            cursor.expect(",")
        values.append(take_value(cursor, field, family))
    return FieldTest(field=field, values=tuple(values), mask=mask, negated=negated)


def _hash_limit(test: HashLimit, family: Family) -> str:
    masks = [format_number(Field.SADDR, m, family) for m in (test.source_mask, test.destination_mask)]
    text = f"hashlimit {word(test.name)} {'above' if test.above else 'upto'} interval {test.interval}"
    text += f" capacity {test.capacity} expire {test.expire} size {test.size}"
    text += (f" window {test.window}" if test.window else "") + f" masks {masks[0]} {masks[1]}"
    return f"{text} per {format_fields(test.key)}" if test.key else text


def _take_hash_limit(cursor: Cursor, family: Family) -> HashLimit:
    name = cursor.next("the name of a table").text
    above = cursor.take("above")
    if not above:
        cursor.expect("upto")
    numbers = {}
    for part in ("interval", "capacity", "expire", "size"):
        cursor.expect(part)
        numbers[part] = cursor.number("a number")
    window = cursor.number("a number of seconds") if cursor.take("window") else 0
    cursor.expect("masks")
    return HashLimit(
        window=window,
        name=name,
        above=above,
        interval=numbers["interval"],
        capacity=numbers["capacity"],
        expire=numbers["expire"],
        size=numbers["size"],
        source_mask=take_number(cursor, Field.SADDR, family),
        destination_mask=take_number(cursor, Field.SADDR, family),
        key=take_fields(cursor) if cursor.take("per") else (),
    )


def _connection_limit(test: ConnectionLimit, family: Family) -> str:
    mask = format_number(Field.SADDR, test.mask, family)
    text = f"connections {'above' if test.above else 'upto'} {test.limit} {test.side} mask {mask}"
    return f"{text} state {word(test.state)}" if test.state else text


def _take_connection_limit(cursor: Cursor, family: Family) -> ConnectionLimit:
    above = cursor.take("above")
    if not above:
        cursor.expect("upto")
    limit = cursor.number("a number of connections")
    side = cursor.member(SetDirection)
    cursor.expect("mask")
    mask = take_number(cursor, Field.SADDR, family)
    state = cursor.next("the name of a count").text if cursor.take("state") else ""
    return ConnectionLimit(limit=limit, above=above, side=side, mask=mask, state=state)


def _take_limit(cursor: Cursor) -> Limit:
    cursor.expect("interval")
    interval = cursor.number("nanoseconds")
    cursor.expect("capacity")
    capacity = cursor.number("nanoseconds")
    bucket = cursor.next("the name of a bucket").text if cursor.take("bucket") else ""
    return Limit(interval=interval, capacity=capacity, bucket=bucket)


def _take_set_test(cursor: Cursor, *, negated: bool) -> SetTest:
    name, directions = _take_key(cursor)
    nomatch = cursor.take("nomatch")
    filled = cursor.take("filled")
    return SetTest(name=name, directions=directions, negated=negated, nomatch=nomatch, filled=filled)


def _set_update(test: SetUpdate) -> str:
    text = f"{word(test.name)}({', '.join(test.directions)})"
    if test.delete:
        return f"delete {text}"
    text = f"add {text}{' refresh' if test.refresh else ''}"
    return text if test.timeout is None else f"{text} timeout {test.timeout}"


def _take_set_update(cursor: Cursor, *, delete: bool) -> SetUpdate:
    name, directions = _take_key(cursor)
    if delete:
        return SetUpdate(name=name, directions=directions, delete=True)
    refresh = cursor.take("refresh")
    timeout = cursor.number("seconds") if cursor.take("timeout") else None
    return SetUpdate(name=name, directions=directions, refresh=refresh, timeout=timeout)


def _take_key(cursor: Cursor) -> tuple[str, tuple[SetDirection, ...]]:
    name = cursor.next("the name of a set").text
    cursor.expect("(")
    directions = [cursor.member(SetDirection)]
    while cursor.take(","):
        directions.append(cursor.member(SetDirection))
    cursor.expect(")")
    return name, tuple(directions)


def _take_words(cursor: Cursor, *, negated: bool) -> WordTest:
    token = cursor.next('words such as "0x6&0xff=0x1"')
    try:
        words = read_words(token.text)
    except WordError as e:
        raise TextError(token.column + 1 + e.offset, str(e)) from None
    return WordTest(words=words, negated=negated)


def _take_recent(cursor: Cursor, family: Family, *, negated: bool) -> Recent:
    mode = cursor.member(RecentMode)
    name = cursor.next("the name of a list").text
    side = cursor.member(SetDirection)
    cursor.expect("mask")
    mask = take_number(cursor, Field.SADDR, family)
    return Recent(
        name=name,
        mode=mode,
        side=side,
        mask=mask,
        seconds=cursor.number("seconds") if cursor.take("seconds") else None,
        hitcount=cursor.number("a number of packets") if cursor.take("hitcount") else None,
        reap=cursor.take("reap"),
        rttl=cursor.take("rttl"),
        negated=negated,
        key=take_fields(cursor) if cursor.take("per") else (),
    )
