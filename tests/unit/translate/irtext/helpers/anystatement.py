"""Strategies for tests and actions: names of any characters, and numbers at their limits."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from translate.ir import (
    Accept,
    Account,
    Action,
    AddTtl,
    AnyOf,
    Apply,
    Audit,
    BytecodeTest,
    CgroupTest,
    Classify,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    External,
    ExternalTarget,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    HashLimit,
    HashMark,
    HeaderOptions,
    Interval,
    Jump,
    Limit,
    LimitMss,
    Log,
    LogDetail,
    LoweredChain,
    Masquerade,
    Name,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Nth,
    Program,
    Proxy,
    Queue,
    Quota,
    Random,
    Recent,
    RecentMode,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    Secmark,
    SetConnmark,
    SetDirection,
    SetMark,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    SetUpdate,
    Snat,
    StripOptions,
    SynProxy,
    TableName,
    Template,
    Test,
    Trace,
    TranslatePrefix,
    Word,
    WordOperator,
    WordTest,
    ZoneSide,
    field_bits,
)
from translate.ir.bytecode import Instruction

One = TypeVar("One")
TEXT = st.text(max_size=6) | st.sampled_from(
    ('a "b\\" {c}', "# 3", "\x7f", "not", "any", "->", "a\udc80", "}", " a ")
)


NAMES = TEXT.filter(bool)
FAMILIES = st.sampled_from(Family)
MARKS = st.integers(0, 2**32 - 1)
BYTES = st.integers(0, 255)
NUMBERS = st.integers(0, 0xFFFFFFFF)
WORDS = st.builds(
    Word,
    offset=NUMBERS,
    steps=st.lists(st.tuples(st.sampled_from(WordOperator), st.integers(0, 31)), max_size=9).map(tuple),
    values=st.lists(st.builds(Interval, NUMBERS, NUMBERS), min_size=1, max_size=10).map(tuple),
)


PORTS = st.integers(0, 65535)
SHARES = st.integers(0, 1 << 31)
COUNTS = st.none() | st.integers(0, 1 << 20)


def intervals(most: int) -> st.SearchStrategy[Interval]:
    ends = st.tuples(st.integers(0, most), st.integers(0, most))
    return ends.map(lambda pair: Interval(min(pair), max(pair)))


def prefixes(bits: int) -> st.SearchStrategy[Interval]:
    return st.builds(Interval.prefix, st.integers(0, 2**bits - 1), st.integers(0, bits), st.just(bits))


def values(field: Field, family: Family) -> st.SearchStrategy[Interval | Name]:
    if field.is_name:
        return st.builds(Name, TEXT, st.booleans())
    bits = field_bits(field, family)
    return intervals(2**bits - 1) | prefixes(bits) | st.integers(0, 2**bits - 1).map(Interval.point)


@st.composite
def field_tests(draw: st.DrawFn, family: Family) -> FieldTest:
    field = draw(st.sampled_from(Field))
    mask = None if field.is_name else draw(st.none() | st.integers(0, 2 ** field_bits(field, family) - 1))
    wanted = draw(st.lists(values(field, family), min_size=1, max_size=3))
    return FieldTest(field=field, values=tuple(wanted), mask=mask, negated=draw(st.booleans()))


def some(items: st.SearchStrategy[One], least: int = 0) -> st.SearchStrategy[tuple[One, ...]]:
    return st.lists(items, min_size=least, max_size=2).map(tuple)


@cache
def kinds_of_tests(family: Family) -> dict[object, st.SearchStrategy[Test]]:
    directions = st.sampled_from(SetDirection)
    return {
        FieldTest: field_tests(family),
        AnyOf: st.builds(AnyOf, tests=some(field_tests(family)), negated=st.booleans()),
        Random: st.builds(Random, numerator=SHARES, negated=st.booleans()),
        Nth: st.builds(Nth, every=PORTS, packet=PORTS, negated=st.booleans()),
        HashLimit: st.builds(
            HashLimit,
            name=NAMES,
            key=some(st.sampled_from(Field)),
            source_mask=st.integers(0, 2**family.bits - 1),
            destination_mask=st.integers(0, 2**family.bits - 1),
            interval=st.integers(1, 10**15),
            capacity=st.integers(1, 10**18),
            expire=st.integers(1, 2**32 - 1),
            size=st.integers(0, 2**32 - 1),
            above=st.booleans(),
            window=st.integers(0, 2**31 - 1),
        ),
        ConnectionLimit: st.builds(
            ConnectionLimit,
            limit=st.integers(0, 2**32 - 1),
            above=st.booleans(),
            side=directions,
            mask=st.integers(0, 2**family.bits - 1),
            state=NAMES | st.just(""),
        ),
        Quota: st.builds(
            Quota, size=st.integers(0, 2**64 - 1), negated=st.booleans(), state=NAMES | st.just("")
        ),
        Limit: st.builds(
            Limit,
            interval=st.integers(1, 10**15),
            capacity=st.integers(1, 10**18),
            bucket=NAMES | st.just(""),
        ),
        SetTest: st.builds(
            SetTest,
            name=NAMES,
            directions=some(directions, 1),
            negated=st.booleans(),
            nomatch=st.booleans(),
            filled=st.booleans(),
        ),
        ConnLabel: st.builds(ConnLabel, number=st.integers(0, 127), add=st.booleans(), negated=st.booleans()),
        ClusterShare: st.builds(
            ClusterShare,
            total=st.integers(1, 32),
            nodes=MARKS,
            seed=MARKS,
            negated=st.booleans(),
        ),
        CgroupTest: st.builds(CgroupTest, path=NAMES, negated=st.booleans()),
        SetUpdate: st.builds(
            SetUpdate,
            name=NAMES,
            directions=some(directions, 1),
            refresh=st.booleans(),
            timeout=COUNTS,
        )
        | st.builds(SetUpdate, name=NAMES, directions=some(directions, 1), delete=st.just(True)),
        Recent: st.builds(
            Recent,
            name=NAMES,
            mode=st.sampled_from(RecentMode),
            side=directions,
            mask=st.integers(0, 2**family.bits - 1),
            seconds=COUNTS,
            hitcount=COUNTS,
            reap=st.booleans(),
            rttl=st.booleans(),
            negated=st.booleans(),
            key=some(st.sampled_from(Field)),
        ),
        Account: st.builds(Account, name=NAMES),
        BytecodeTest: st.builds(
            BytecodeTest,
            program=st.lists(st.builds(Instruction, st.just(4), BYTES, BYTES, MARKS), max_size=5).map(
                lambda program: (*program, Instruction(6, 0, 0, 1))
            ),
        ),
        HeaderOptions: st.builds(
            HeaderOptions,
            header=st.sampled_from((Field.HOP_LENGTH, Field.DESTINATION_LENGTH)),
            options=some(st.tuples(BYTES, st.none() | BYTES), 1),
        ),
        WordTest: st.builds(
            WordTest, words=st.lists(WORDS, min_size=1, max_size=3).map(tuple), negated=st.booleans()
        ),
    }


@cache
def kinds_of_actions(family: Family) -> dict[object, st.SearchStrategy[Action]]:
    ports = st.builds(
        NatPorts,
        interval=st.none() | intervals(65535),
        base=st.none() | PORTS,
        random=st.booleans(),
        fully_random=st.booleans(),
        persistent=st.booleans(),
    )
    addresses = st.none() | intervals(2**family.bits - 1) | prefixes(family.bits)
    details = some(st.sampled_from(LogDetail))
    return {
        **{kind: st.builds(kind) for kind in (Accept, Drop, Return, NoTrack, RestoreSocketMark)},
        **{kind: st.builds(kind, NAMES) for kind in (Jump, Goto)},
        Reject: st.builds(Reject, st.sampled_from(RejectKind)),
        **{kind: st.builds(kind, MARKS, MARKS) for kind in (SetMark, SetConnmark, SaveMark, RestoreMark)},
        **{kind: st.builds(kind, addresses, ports) for kind in (Dnat, Snat)},
        **{kind: st.builds(kind, ports) for kind in (Masquerade, Redirect)},
        SetTos: st.builds(SetTos, BYTES, BYTES),
        TranslatePrefix: st.builds(
            TranslatePrefix,
            source=st.booleans(),
            old=st.integers(0, 2**family.bits - 1),
            old_bits=st.integers(0, 32),
            new=st.integers(0, 2**family.bits - 1),
            bits=st.integers(0, 32),
        ),
        HashMark: st.builds(
            HashMark,
            source_mask=st.integers(0, 2**family.bits - 1),
            destination_mask=st.integers(0, 2**family.bits - 1),
            **dict.fromkeys(("port_mask", "port_set", "protocol_mask", "seed", "modulus", "offset"), MARKS),
            by_connection=st.booleans(),
        ),
        SetTcpFlags: st.builds(SetTcpFlags, BYTES, BYTES),
        SetTtl: st.builds(SetTtl, BYTES),
        AddTtl: st.builds(AddTtl, st.integers(-255, 255)),
        Log: st.builds(Log, TEXT, st.integers(0, 7), details),
        **{kind: st.builds(kind) for kind in (Audit, FillChecksum, Trace)},
        Duplicate: st.builds(Duplicate, st.integers(0, 2**family.bits - 1), NAMES | st.just("")),
        External: st.builds(External, st.sampled_from(ExternalTarget)),
        Secmark: st.builds(Secmark, TEXT),
        ConnSecmark: st.builds(ConnSecmark, st.booleans()),
        SynProxy: st.builds(
            SynProxy,
            mss=st.none() | PORTS,
            wscale=st.none() | BYTES,
            sack_perm=st.booleans(),
            timestamp=st.booleans(),
            ecn=st.booleans(),
        ),
        Classify: st.builds(Classify, MARKS),
        Netmap: st.builds(
            Netmap,
            network=st.integers(0, 0xFFFFFFFF),
            mask=st.integers(0, 0xFFFFFFFF),
            side=st.none() | st.sampled_from(SetDirection),
        ),
        Queue: st.builds(
            Queue,
            first=st.integers(0, 65535),
            last=st.integers(0, 65535),
            bypass=st.booleans(),
            by_processor=st.booleans(),
        ),
        Proxy: st.builds(
            Proxy,
            address=st.none() | st.integers(0, 2**family.bits - 1),
            port=PORTS,
            value=MARKS,
            mask=MARKS,
        ),
        StripOptions: st.builds(StripOptions, some(st.integers(0, 255))),
        LimitMss: st.builds(LimitMss, st.none() | PORTS),
        Template: st.builds(
            Template,
            zone=st.none() | PORTS,
            side=st.sampled_from(ZoneSide),
            helper=TEXT,
            protocol=st.none() | st.sampled_from((6, 17)),
            timeout=TEXT,
            events=st.none() | some(st.sampled_from(("new", "mark"))),
            expectation_events=st.none() | some(st.just("new")),
        ),
        NfLog: st.builds(NfLog, prefix=TEXT, group=PORTS, size=COUNTS, threshold=COUNTS),
    }


def one_statement(family: Family, tests: tuple[Test, ...], actions: tuple[Action, ...]) -> Program:
    statement = Apply(tests=tests, actions=actions)
    chain = LoweredChain(name="nat/a", table=TableName.NAT, statements=(statement,))
    return Program(family=family, chains=(chain,))
