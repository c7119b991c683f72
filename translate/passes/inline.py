"""``inline``: replace the call of a chain by its statements.

*Before*: a chain that calls another, in a Program in which no chain reaches itself.

*After*: the chain without this call.

*Why the meaning is preserved*: the tests of the call are put before those of each statement of the chain.
They can be evaluated repeatedly (``plain``), and neither the chain nor the call changes a field that they
read, so they hold for all of its statements or for none. At the end of a chain that was reached by a goto,
control returns from the caller as well, so a ``Return`` with the same tests is added there. A chain that is
reached by a jump must come back only at its end, unless the jump is the last statement of the caller, where
``Return`` and ``Goto`` lead to the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from translate.dataclass import replace
from translate.ir import (
    Apply,
    Field,
    FieldTest,
    Goto,
    Jump,
    LoweredChain,
    Return,
    SetTest,
    Statement,
    Test,
    alternatives,
)
from translate.passes.calls import callee
from translate.passes.control import changed_by, plain

__all__ = ["inline"]


def inline(
    caller: LoweredChain, chain: LoweredChain, changed: Mapping[str, frozenset[Field]]
) -> LoweredChain | None:
    """Return ``caller`` with its calls of ``chain`` replaced; None if that is not possible.

    ``changed`` has the fields that each chain may change (``control.changed_fields``).
    """
    statements = _written_out(caller, chain, changed)
    return None if statements is None else replace(caller, statements=statements)


def _written_out(
    caller: LoweredChain, chain: LoweredChain, changed: Mapping[str, frozenset[Field]]
) -> tuple[Statement, ...] | None:
    written: list[Statement] = []
    for index, statement in enumerate(caller.statements):
        if not any(callee(each.actions) == chain.name for each in alternatives(statement)):
            written.append(statement)
            continue
        if not isinstance(statement, Apply) or not _holds_on(statement, changed):
            return None
        last = index == len(caller.statements) - 1
        if isinstance(statement.actions[-1], Jump) and not last and not _comes_back(chain):
            return None
        written += _called(statement, chain)
        if isinstance(statement.actions[-1], Goto) and not statement.tests:
            break  # nothing after it is reached
    return tuple(written)


def _called(call: Apply, chain: LoweredChain) -> Iterator[Statement]:
    """Yield the statements that replace a call."""
    if call.actions[:-1]:
        yield replace(call, actions=call.actions[:-1])
    if not call.tests:
        yield from chain.statements
        return
    for statement in chain.statements:
        own = (test for test in statement.tests if test not in call.tests)
        yield replace(statement, tests=(*call.tests, *own))
    if isinstance(call.actions[-1], Goto):
        yield replace(call, actions=(Return(),))


def _holds_on(call: Apply, changed: Mapping[str, frozenset[Field]]) -> bool:
    """Return whether the tests of a call have the same result after its effects."""
    after = changed_by(call.actions, changed)
    return plain(call.tests) and not any(_reads(test, after) for test in call.tests)


def _reads(test: Test, changed: frozenset[Field]) -> bool:
    if isinstance(test, SetTest):
        return False  # addresses and ports, which no effect changes
    assert isinstance(test, FieldTest)
    # A packet that becomes UNTRACKED loses the data of its connection.
    return test.field in changed or (test.field.is_connection and Field.CT_STATE in changed)


def _comes_back(chain: LoweredChain) -> bool:
    """Return whether packets come back from the chain only at its end."""
    return not any(
        each.actions and isinstance(each.actions[-1], Return | Goto)
        for statement in chain.statements
        for each in alternatives(statement)
    )
