"""Strategies for Programs of any content, with origins and ipsets."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.unit.translate.irtext.helpers.anystatement import (
    FAMILIES,
    NAMES,
    SHARES,
    TEXT,
    intervals,
    kinds_of_actions,
    kinds_of_tests,
    prefixes,
    some,
    values,
)
from translate.ir import (
    NOWHERE,
    Apply,
    Branch,
    Cell,
    Choose,
    Entry,
    Family,
    Field,
    Hook,
    Interval,
    IpSet,
    Lookup,
    LoweredChain,
    Origin,
    Policy,
    Program,
    SetElement,
    SetOption,
    SetType,
    TableName,
)

PLACES = st.builds(
    Origin,
    TEXT | st.just("rules"),
    st.integers(0, 3),
    st.integers(0, 3),
    TEXT.map(lambda t: t.replace("\n", "")),
)


ORIGINS = st.just(NOWHERE) | PLACES | PLACES.map(Origin.of_several)


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
        reassembled=draw(st.booleans()),
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
