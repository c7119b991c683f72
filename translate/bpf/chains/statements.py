"""Statements as C, inside the function of their chain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from translate.bpf.chains.actions import action_code
from translate.bpf.chains.code import Code, Needs, Variable
from translate.bpf.chains.conditions import conditions
from translate.bpf.chains.context import Context
from translate.bpf.chains.lookups import lookup_code
from translate.bpf.refusals import CannotExpress
from translate.ir import (
    RANDOM_RANGE,
    Apply,
    CgroupTest,
    Choose,
    ClusterShare,
    ConnectionLimit,
    Field,
    FieldTest,
    Goto,
    HashLimit,
    Jump,
    Lookup,
    Recent,
    SetUpdate,
    Statement,
    Test,
    alternatives,
    flat,
)
from translate.passes.recents import changes_list

__all__ = ["called_chains", "statement_code"]


def called_chains(statement: Statement) -> Iterator[str]:
    """Yield the chains that a statement can jump or go to."""
    for each in alternatives(statement):
        for action in each.actions:
            if isinstance(action, Jump | Goto):
                yield action.chain


def statement_code(statement: Statement, context: Context) -> Code:
    """Return the code of one statement. Raises CannotExpress."""
    if context.takes and _reads_cgroups(statement):
        reason = "a tc program sees a packet before the stack finds the socket that takes it"
        raise CannotExpress("socket-taker", reason)
    match statement:
        case Apply(tests=tests, actions=()) if any(map(_acts, tests)):
            condition = conditions(tests, context)
            return Code((f"(void)({condition.text});",), condition.needs)
        case Apply():
            return conditions(statement.tests, context).guarding(action_code(statement.actions, context))
        case Lookup():
            return lookup_code(statement, context)
        case Choose():
            return conditions(statement.tests, context).guarding(_choice(statement, context))
        case _:
            assert_never(statement)


def _reads_cgroups(statement: Statement) -> bool:
    """Return whether a statement tests the cgroup of a socket."""
    fields = {test.field for test in flat(statement.tests) if isinstance(test, FieldTest)}
    if isinstance(statement, Lookup):
        fields.update(statement.fields)
    return Field.SOCKET_CLASS in fields or any(isinstance(test, CgroupTest) for test in statement.tests)


def _choice(statement: Choose, context: Context) -> Code:
    lines = ["drawn = bpf_get_prandom_u32() >> 1;"]
    needs = [Needs(variables=frozenset({Variable.DRAWN}))]
    below = 0
    for at, branch in enumerate(statement.branches):
        below += branch.weight
        body = action_code(branch.actions, context)
        test = "" if below == RANDOM_RANGE else f"if (drawn < {below:#x}) "
        lines += [f"}} else {test}{{" if at else f"{test}{{", *body.indented()]
        needs.append(body.needs)
    return Code((*lines, "}"), Needs.of_all(needs))


def _acts(test: Test) -> bool:
    """Return whether a test has an effect in addition to its result."""
    return isinstance(test, HashLimit | ClusterShare | SetUpdate | ConnectionLimit) or (
        isinstance(test, Recent) and changes_list(test)
    )
