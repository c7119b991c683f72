"""Random small rulesets and packets that every pass can change."""

from __future__ import annotations

from functools import partial

from hypothesis import strategies as st

from tests.unit.translate.passes.helpers.evaluate import State
from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Action,
    AnyOf,
    Chain,
    ConnectionState,
    ConnectionStatus,
    Dnat,
    Drop,
    Family,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Limit,
    Name,
    NatPorts,
    Policy,
    Random,
    Reject,
    RejectKind,
    Return,
    Rule,
    Ruleset,
    SetMark,
    Table,
    TableName,
    Test,
)

ADDRESSES = (1, 2, 3)
PORTS = (53, 80, 81)
USER_CHAINS = ("one", "two", "three", "four")


def is_(field: Field, *values: int, mask: int | None = None, negated: bool = False) -> FieldTest:
    return FieldTest(field=field, values=tuple(Interval.point(v) for v in values), mask=mask, negated=negated)


def some(values: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=2).map(tuple)


STATES = tuple(int(s) for s in ConnectionState)
FIELD_TESTS: st.SearchStrategy[FieldTest] = st.one_of(
    *(
        st.builds(
            lambda values, negated, field=field: is_(field, *values, negated=negated),
            some(values),
            st.booleans(),
        )
        for field, values in (
            (Field.SADDR, ADDRESSES),
            (Field.DADDR, ADDRESSES),
            (Field.L4PROTO, (1, 6, 17)),
            (Field.DPORT, PORTS),
            (Field.ICMP_TYPE, (0, 8)),
            (Field.CT_STATE, STATES),
            (Field.MARK, (0, 1, 2, 3)),
        )
    ),
    st.builds(
        lambda value, mask, negated: is_(Field.MARK, value, mask=mask, negated=negated),
        st.integers(0, 3),
        st.integers(0, 3),
        st.booleans(),
    ),
    st.builds(
        lambda low, high: FieldTest(field=Field.DPORT, values=(Interval(min(low, high), max(low, high)),)),
        st.sampled_from((0, *PORTS, 65535)),
        st.sampled_from((0, *PORTS, 65535)),
    ),
    st.builds(
        lambda text, wildcard, negated: FieldTest(
            field=Field.IIF, values=(Name(text, wildcard),), negated=negated
        ),
        st.sampled_from(("", "eth", "eth0")),
        st.booleans(),
        st.booleans(),
    ),
    st.builds(
        lambda bit, negated: is_(Field.CT_STATUS, *((0,) if negated else (bit,)), mask=bit, negated=negated),
        st.sampled_from((int(ConnectionStatus.DNAT), int(ConnectionStatus.SNAT))),
        st.booleans(),
    ),
)
NUMERATORS = st.sampled_from(
    (0, 1, RANDOM_RANGE // 4, RANDOM_RANGE // 2, 715827883, 1431655765, RANDOM_RANGE - 1, RANDOM_RANGE)
)
TESTS: st.SearchStrategy[Test] = st.one_of(
    FIELD_TESTS,
    FIELD_TESTS,
    st.builds(
        lambda tests, negated: AnyOf(tests=tuple(tests), negated=negated),
        st.lists(FIELD_TESTS, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.builds(Random, numerator=NUMERATORS, negated=st.booleans()),
    st.builds(Limit, interval=st.just(1), capacity=st.integers(1, 3)),
)


_ENDS: tuple[tuple[Action, ...], ...] = ((Accept(),), (Drop(),), (Return(),), (Reject(RejectKind.TCP_RESET),))


def actions(later: tuple[str, ...]) -> st.SearchStrategy[tuple[Action, ...]]:
    """Draw the actions of a rule whose chain may call the ``later`` chains."""
    some_actions: list[st.SearchStrategy[tuple[Action, ...]]] = [
        st.just(()),
        st.sampled_from(_ENDS),
        st.builds(SetMark, st.integers(0, 3), st.integers(0, 3)).map(lambda a: (a,)),
        st.integers(1, 3).map(lambda n: (Dnat(Interval.point(n), NatPorts()),)),
    ]
    if later:
        targets = st.sampled_from(later)
        some_actions += [targets.map(lambda c: (Jump(c),))] * 4 + [targets.map(lambda c: (Goto(c),))]
    return st.one_of(some_actions)


def rule(tests: tuple[Test, ...], done: tuple[Action, ...]) -> Rule:
    return Rule(tests=tests, actions=done)


def _chosen(field: Field, constants: list[int]) -> FieldTest:
    return is_(field, *constants)


@st.composite
def runs(draw: st.DrawFn, later: tuple[str, ...]) -> list[Rule]:
    """Draw rules that compare the same fields with constants, some of which are equal."""
    shared = tuple(draw(st.lists(FIELD_TESTS, max_size=1)))
    fields = draw(
        st.sampled_from(
            (
                ((Field.DADDR, ADDRESSES), (Field.L4PROTO, (6, 17)), (Field.DPORT, PORTS)),
                ((Field.DADDR, ADDRESSES),),
                ((Field.MARK, (0, 1, 2, 3)),),
                ((Field.L4PROTO, (6, 17)), (Field.DPORT, PORTS)),
            )
        )
    )
    lists = [(f, v, some(v).map(partial(_chosen, f))) for f, v in fields]
    return [
        rule(
            (*(draw(listed | constants(f, v, wide=4)) for f, v, listed in lists), *shared),
            draw(actions(later)),
        )
        for _ in range(draw(st.integers(2, 4)))
    ]


@st.composite
def ladders(draw: st.DrawFn, later: tuple[str, ...]) -> list[Rule]:
    shared = tuple(draw(st.lists(FIELD_TESTS, max_size=1)))
    n = draw(st.integers(2, 4))
    if draw(st.booleans()):
        numerators = [round(RANDOM_RANGE / (n - k)) for k in range(n)]
    else:
        numerators = [draw(NUMERATORS) for _ in range(n)]
    return [
        rule(
            shared if numerator == RANDOM_RANGE else (*shared, Random(numerator=numerator)),
            draw(actions(later)),
        )
        for numerator in numerators
    ]


@st.composite
def rulesets(draw: st.DrawFn) -> Ruleset:
    chains: list[Chain] = []
    names = ("PREROUTING", *USER_CHAINS)
    for index, name in enumerate(names):
        later = names[index + 1 :]
        parts = draw(
            st.lists(
                st.one_of(
                    st.builds(lambda t, a: [rule(tuple(t), a)], st.lists(TESTS, max_size=3), actions(later)),
                    runs(later),
                    ladders(later),
                ),
                max_size=3,
            )
        )
        hook = Hook.PREROUTING if index == 0 else None
        policy = draw(st.sampled_from(Policy)) if index == 0 else None
        chains.append(Chain(name=name, rules=tuple(r for p in parts for r in p), hook=hook, policy=policy))
    return Ruleset(family=Family.IP, tables=(Table(name=TableName.NAT, chains=tuple(chains)),))


@st.composite
def constants(draw: st.DrawFn, field: Field, values: tuple[int, ...], *, wide: int) -> FieldTest:
    """Draw a comparison with one of the values, or, once in ``wide`` draws, with an interval that begins
    there.
    """
    constant = draw(st.sampled_from(values))
    if draw(st.integers(1, wide)) > 1:
        return is_(field, constant)
    return FieldTest(field=field, values=(Interval(constant, constant + 9),))


@st.composite
def mixtures(draw: st.DrawFn) -> Ruleset:
    """Draw a chain in which rules of a few kinds alternate."""
    kinds = (
        ((Field.DADDR, ADDRESSES), (Field.DPORT, PORTS)),
        ((Field.SADDR, ADDRESSES), (Field.DPORT, PORTS)),
        ((Field.DADDR, ADDRESSES),),
        ((Field.DPORT, PORTS),),
        ((Field.MARK, (0, 1, 2, 3)),),
        ((Field.SADDR, ADDRESSES), (Field.MARK, (0, 1))),
    )
    turns = st.sampled_from(draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=4, unique=True)))
    ends: tuple[tuple[Action, ...], ...] = ((Accept(),), (Drop(),), (SetMark(1, 3),))
    some_actions = st.one_of(st.sampled_from(ends), actions(("one",)))
    rules = [
        rule(
            tuple(draw(constants(f, values, wide=2 if len(kind) == 1 else 8)) for f, values in kind),
            draw(some_actions),
        )
        for kind in draw(st.lists(turns, min_size=4, max_size=12))
    ]
    single = Chain(name="one", rules=(rule((), (SetMark(2, 3),)),))
    base = Chain(name="PREROUTING", rules=tuple(rules), hook=Hook.PREROUTING, policy=Policy.ACCEPT)
    return Ruleset(family=Family.IP, tables=(Table(name=TableName.NAT, chains=(base, single)),))


@st.composite
def packets(draw: st.DrawFn) -> State:
    proto = draw(st.sampled_from((1, 6, 17)))
    fields: dict[Field, int | str] = {
        Field.SADDR: draw(st.sampled_from((*ADDRESSES, 9))),
        Field.DADDR: draw(st.sampled_from((*ADDRESSES, 9))),
        Field.L4PROTO: proto,
        Field.FRAGMENT: draw(st.sampled_from((0, 0, 0, 1))),
        Field.MARK: draw(st.integers(0, 3)),
        Field.IIF: draw(st.sampled_from(("", "eth0", "eth1", "lo"))),
        Field.CT_STATE: draw(st.sampled_from(STATES)),
    }
    if not fields[Field.FRAGMENT] and proto == 1:
        fields |= {Field.ICMP_TYPE: draw(st.sampled_from((0, 8, 3))), Field.ICMP_CODE: 0}
    elif not fields[Field.FRAGMENT]:
        fields |= {Field.SPORT: 1000, Field.DPORT: draw(st.sampled_from((*PORTS, 9)))}
    if fields[Field.CT_STATE] not in (ConnectionState.INVALID, ConnectionState.UNTRACKED):
        fields[Field.CT_STATUS] = draw(st.sampled_from((0, 8, 16, 32, 48)))
    return State.of(fields)
