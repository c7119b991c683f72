"""Every Program is read back from its text as it was, with every origin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from tests.lab.random.rules import random_rules
from tests.unit.translate.passes.helpers.rulesets import rulesets
from tests.unit.translate.passes.helpers.services import service_rulesets
from translate.ir import (
    NOWHERE,
    Accept,
    Account,
    Action,
    AddTtl,
    AnyOf,
    Apply,
    Audit,
    Branch,
    Cell,
    Choose,
    Classify,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Dnat,
    Drop,
    Duplicate,
    Entry,
    External,
    ExternalTarget,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    HashLimit,
    Hook,
    Interval,
    IpSet,
    Jump,
    Limit,
    LimitMss,
    Log,
    LogDetail,
    Lookup,
    LoweredChain,
    Masquerade,
    Name,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Nth,
    Origin,
    Policy,
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
    Return,
    Ruleset,
    SaveMark,
    SetConnmark,
    SetDirection,
    SetElement,
    SetMark,
    SetOption,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    SetType,
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
from translate.irtext import parse_program, print_program
from translate.passes import LEVELS, lower
from translate.read import read_ipsets, read_ruleset, with_sets

CORPUS = Path(__file__).resolve().parents[3] / "corpus/rulesets"


def origins(program: Program) -> Iterator[Origin]:
    for ipset in program.sets:
        yield ipset.origin
        yield from (element.origin for element in ipset.elements)
    for chain in program.chains:
        yield chain.origin
        for statement in chain.statements:
            yield statement.origin
            match statement:
                case Lookup():
                    yield from (entry.origin for entry in statement.entries)
                case Choose():
                    yield from (branch.origin for branch in statement.branches)


def comes_back(program: Program) -> None:
    text = print_program(program)
    read = parse_program(text, name="text")
    assert read == program
    assert list(origins(read)) == list(origins(program))
    assert print_program(read) == text


def every_pass(ruleset: Ruleset) -> Iterator[Program]:
    """The Program after each pass of each level, once where passes change nothing."""
    made: list[Program] = []
    for level, steps in LEVELS.items():
        program = lower(ruleset, level=level, after="flatten")
        for step in (None, *steps):
            program = program if step is None else step(program)
            if program not in made:
                made.append(program)
                yield program


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("seed", range(20))
def test_random_rules(seed: int, family: Family) -> None:
    text = random_rules(seed, family)
    for program in every_pass(read_ruleset(text.encode(), name="rules", family=family)):
        comes_back(program)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*/rules.ip*tables-save")), ids=lambda p: p.parent.name)
def test_rules_of_the_corpus(path: Path) -> None:
    ruleset = read_ruleset(path.read_bytes(), name=path.name)
    ipsets = path.parent / "ipset-save"
    if ipsets.exists():
        ruleset = with_sets(ruleset, read_ipsets(ipsets.read_bytes(), name="sets"))
    for program in every_pass(ruleset):
        comes_back(program)


@pytest.mark.parametrize("family", Family)
def test_a_large_cluster(family: Family) -> None:
    text = kube_proxy_rules(draw_cluster(Shape(services=90, endpoints=2, family=family)))
    ruleset = read_ruleset(text.encode(), name="rules", family=family)
    comes_back(lower(ruleset, level=2))
    comes_back(lower(ruleset, level=2, after="prune-2"))


@given(ruleset=st.one_of(rulesets(), service_rulesets()))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_rules_that_give_every_pass_something_to_do(ruleset: Ruleset) -> None:
    for program in every_pass(ruleset):
        comes_back(program)


# Programs of any content: every kind of node, names of any characters, numbers at their limits.

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
    found = draw(st.lists(values(field, family), min_size=1, max_size=3))
    return FieldTest(field=field, values=tuple(found), mask=mask, negated=draw(st.booleans()))


def some(one: st.SearchStrategy[One], least: int = 0) -> st.SearchStrategy[tuple[One, ...]]:
    return st.lists(one, min_size=least, max_size=2).map(tuple)


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
        **{kind: st.builds(kind) for kind in (Accept, Drop, Return, NoTrack)},
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
        SetTcpFlags: st.builds(SetTcpFlags, BYTES, BYTES),
        SetTtl: st.builds(SetTtl, BYTES),
        AddTtl: st.builds(AddTtl, st.integers(-255, 255)),
        Log: st.builds(Log, TEXT, st.integers(0, 7), details),
        **{kind: st.builds(kind) for kind in (Audit, FillChecksum, Trace)},
        Duplicate: st.builds(Duplicate, st.integers(0, 2**family.bits - 1), NAMES | st.just("")),
        External: st.builds(External, st.sampled_from(ExternalTarget)),
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


@pytest.mark.parametrize("kind", get_args(Test), ids=lambda kind: kind.__name__)
@given(data=st.data(), family=FAMILIES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_test(kind: type, family: Family, data: st.DataObject) -> None:
    comes_back(one_statement(family, (data.draw(kinds_of_tests(family)[kind]),), ()))


@pytest.mark.parametrize("kind", get_args(Action), ids=lambda kind: kind.__name__)
@given(data=st.data(), family=FAMILIES)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_action(kind: type, family: Family, data: st.DataObject) -> None:
    comes_back(one_statement(family, (), (data.draw(kinds_of_actions(family)[kind]),)))


PLACES = st.builds(
    Origin,
    TEXT | st.just("rules"),
    st.integers(0, 3),
    st.integers(0, 3),
    TEXT.map(lambda t: t.replace("\n", "")),
)
ORIGINS = st.just(NOWHERE) | PLACES | PLACES.map(Origin.of_several)


@given(origin=ORIGINS, source=TEXT | st.just("rules"))
@settings(max_examples=150, deadline=None)
def test_any_origin(origin: Origin, source: str) -> None:
    chain = LoweredChain(name="nat/a", table=TableName.NAT, statements=(), origin=origin)
    comes_back(Program(family=Family.IP, chains=(chain,), source=source))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    family = draw(FAMILIES)
    done = some(st.one_of(list(kinds_of_actions(family).values())))
    tests = some(st.one_of(list(kinds_of_tests(family).values())))
    fields = draw(some(st.sampled_from(Field), 1))
    key = st.tuples(*(values(field, family) for field in fields))
    entry = st.builds(Entry, key=key, actions=done, origin=ORIGINS)
    branch = st.builds(Branch, weight=SHARES, actions=done, origin=ORIGINS)
    statement = st.one_of(
        st.builds(Apply, tests=tests, actions=done, origin=ORIGINS),
        st.builds(Lookup, fields=st.just(fields), entries=some(entry), tests=tests, origin=ORIGINS),
        st.builds(Choose, branches=some(branch), equal=st.booleans(), tests=tests, origin=ORIGINS),
    )
    chain = st.builds(
        lambda name, table, statements, hook, priority, policy, origin: LoweredChain(
            name=f"{table}/{name}",
            table=table,
            statements=statements,
            hook=hook,
            priority=priority,
            policy=policy,
            origin=origin,
        ),
        NAMES,
        st.sampled_from(TableName),
        some(statement),
        st.none() | st.sampled_from(Hook),
        st.none() | st.integers(-300, 300),
        st.none() | st.sampled_from(Policy),
        ORIGINS,
    )
    return Program(
        family=family,
        chains=draw(some(chain)),
        source=draw(TEXT | st.just("rules")),
        sets=draw(some(ipsets())),
        tracked=draw(st.booleans()),
    )


@st.composite
def ipsets(draw: st.DrawFn) -> IpSet:
    kind = draw(st.sampled_from(SetType))
    family = None if kind is SetType.BITMAP_PORT else draw(FAMILIES)
    bits = (family or Family.IP).bits
    cells = {
        Cell.ADDRESS: st.integers(0, 2**bits - 1).map(Interval.point),
        Cell.NET: prefixes(bits),
        Cell.PROTOCOL: st.integers(0, 255).map(Interval.point),
        Cell.PORT: intervals(65535),
    }
    options = some(st.builds(SetOption, NAMES, st.none() | TEXT))
    element = st.builds(
        SetElement,
        key=st.tuples(*(cells[cell] for cell in kind.cells)),
        nomatch=st.booleans(),
        options=options,
        origin=ORIGINS,
    )
    return IpSet(
        name=draw(NAMES),
        type=kind,
        family=family,
        elements=draw(some(element)),
        options=draw(options),
        origin=draw(ORIGINS),
    )


@given(program=programs())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_program(program: Program) -> None:
    comes_back(program)


def test_a_line_of_text_is_one_line_of_the_program() -> None:
    """No name and no rule can begin a line of its own, whatever characters it has."""
    rules = '*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -j LOG --log-prefix "a\x0b\x85b # c"\nCOMMIT\n'
    text = print_program(lower(read_ruleset(rules.encode(), name="rules"), level=0))
    assert len(text.splitlines()) == text.count("\n")
    assert re.search(r'log "a\\u\{b\}\\u\{85\}b # c" level 4 +# 3: -A INPUT', text)
