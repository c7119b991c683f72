from __future__ import annotations

import pytest

from translate.ir import (
    Accept,
    Apply,
    Chain,
    Family,
    Field,
    FieldTest,
    Goto,
    Hook,
    Interval,
    Jump,
    Origin,
    Policy,
    Rule,
    Ruleset,
    Table,
    TableName,
)
from translate.passes import lower, verify

TCP = FieldTest(field=Field.L4PROTO, values=(Interval.point(6),))


def ruleset(*tables: Table) -> Ruleset:
    return Ruleset(family=Family.IP, tables=tables, source="rules")


def filter_table() -> Table:
    jump = Rule(tests=(TCP,), actions=(Jump("mine"),), origin=Origin("rules", 4, 1, "-A INPUT …"))
    return Table(
        name=TableName.FILTER,
        chains=(
            Chain(name="INPUT", rules=(jump,), hook=Hook.INPUT, policy=Policy.DROP),
            Chain(name="mine", rules=(Rule(tests=(), actions=(Goto("end"),)), Rule(tests=(), actions=()))),
            Chain(name="end", rules=(Rule(tests=(), actions=(Accept(),)),)),
        ),
    )


def test_every_rule_becomes_one_statement_in_place() -> None:
    program = verify(lower(ruleset(filter_table()), level=0))
    assert [chain.name for chain in program.chains] == ["filter/INPUT", "filter/mine", "filter/end"]
    assert program.chain("filter/INPUT").statements == (Apply(tests=(TCP,), actions=(Jump("filter/mine"),)),)
    assert program.chain("filter/mine").statements == (
        Apply(tests=(), actions=(Goto("filter/end"),)),
        Apply(tests=(), actions=()),
    )
    assert program.chain("filter/INPUT").statements[0].origin.line == 4


def test_base_chains_get_their_hook_priority_and_policy() -> None:
    nat = Table(
        name=TableName.NAT,
        chains=(
            Chain(name="INPUT", rules=(), hook=Hook.INPUT, policy=Policy.ACCEPT),
            Chain(name="OUTPUT", rules=(), hook=Hook.OUTPUT, policy=Policy.ACCEPT),
        ),
    )
    program = verify(lower(ruleset(filter_table(), nat), level=0))
    got = {c.name: (c.hook, c.priority, c.policy) for c in program.chains if c.hook is not None}
    assert got == {
        "nat/INPUT": (Hook.INPUT, 100, Policy.ACCEPT),
        "nat/OUTPUT": (Hook.OUTPUT, -100, Policy.ACCEPT),
        "filter/INPUT": (Hook.INPUT, 0, Policy.DROP),
    }


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no optimisation level 7"):
        lower(ruleset(), level=7)
