"""Faults that the text form cannot express; ``cases/verify`` has the others."""

from __future__ import annotations

import pytest

from translate.ir import (
    Apply,
    Drop,
    Entry,
    Family,
    Field,
    Hook,
    Interval,
    Jump,
    Lookup,
    LoweredChain,
    Name,
    Policy,
    Program,
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
        (Lookup(fields=(Field.DPORT,), entries=(entry(Name("eth0")),)), "not a value of l4.dport"),
        (Lookup(fields=(Field.DPORT,), entries=(entry(POINT(1), POINT(2)),)), "one value per field"),
        (Lookup(fields=(), entries=()), "without fields"),
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
