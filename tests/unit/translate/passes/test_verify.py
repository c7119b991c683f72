from __future__ import annotations

import pytest

from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Apply,
    Branch,
    Choose,
    Drop,
    Entry,
    Family,
    Field,
    Goto,
    Hook,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    Name,
    Policy,
    Program,
    SetMark,
    Statement,
    TableName,
)
from translate.passes import VerifyError, verify


def entry(*key: Interval | Name) -> Entry:
    return Entry(key=key, actions=(Drop(),))


POINT = Interval.point


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        (Apply(tests=(), actions=(Drop(), SetMark(1, 1))), "something comes after a verdict"),
        (Apply(tests=(), actions=(Jump("filter/none"),)), "does not exist"),
        (Apply(tests=(), actions=(Jump("filter/INPUT"),)), "no user chain"),
        (Apply(tests=(), actions=(Goto("filter/user"),)), "reach themselves"),
        (Lookup(fields=(Field.DPORT,), entries=(entry(POINT(1)), entry(POINT(1)))), "same key"),
        (Lookup(fields=(Field.DPORT,), entries=(entry(POINT(1)), entry(Interval(0, 9)))), "overlap"),
        (Lookup(fields=(Field.DPORT,), entries=(entry(Name("eth0")),)), "no value of l4.dport"),
        (Lookup(fields=(Field.DPORT,), entries=(entry(POINT(1), POINT(2)),)), "one value per field"),
        (Lookup(fields=(), entries=()), "without fields"),
        (Choose(branches=(Branch(weight=RANDOM_RANGE - 1, actions=(Accept(),)),)), "do not share out"),
        (Choose(branches=()), "do not share out"),
    ],
)
def test_what_no_pass_may_produce_is_named(statement: Statement, complaint: str) -> None:
    table = TableName.FILTER
    user = LoweredChain(name="filter/user", table=table, statements=(statement,))
    call = Apply(tests=(), actions=(Jump("filter/user"),))
    base = LoweredChain(
        name="filter/INPUT",
        table=table,
        statements=(call,),
        hook=Hook.INPUT,
        priority=0,
        policy=Policy.ACCEPT,
    )
    with pytest.raises(VerifyError, match=complaint):
        verify(Program(family=Family.IP, chains=(base, user)))


def test_a_base_chain_stands_where_its_table_hooks() -> None:
    chain = LoweredChain(
        name="filter/INPUT",
        table=TableName.FILTER,
        statements=(),
        hook=Hook.INPUT,
        priority=-100,
        policy=Policy.ACCEPT,
    )
    with pytest.raises(VerifyError, match="priority"):
        verify(Program(family=Family.IP, chains=(chain,)))
