"""``normalise``: every condition in one canonical form, and chains of effects inlined.

*Before*: any verified Program.

*After*: a statement's tests name each field (with one mask) at most once, except next to tests with state;
values are sorted, disjoint and non-adjacent; no test holds for every packet, alone or given the others; no
statement's tests contradict each other. No statement jumps to a chain that does the same to every packet
(``KUBE-MARK-MASQ``): it has the actions of that chain instead.

*Why the meaning is preserved*: all tests of a statement read the same packet, so they commute and may be
intersected; a test is dropped only where the others imply it, and a statement only where no packet can pass.
A test on a field that may be absent also tests that the field is present, so it never counts as a test that
always holds. Draws are independent and never merged. Tests are not moved across a ``Recent``, ``Account``,
``SetUpdate``, ``ConnLabel``, ``ClusterShare`` or ``HashLimit``, and tests of a statement with an ``Nth``,
``Limit``, ``ConnectionLimit`` or ``Quota`` keep their order: the tests before it decide which packets it
sees. A chain without tests does the same to each packet: after a jump to it control continues (unless its
last action ends the table), after a goto it returns to the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, assert_never

from translate.dataclass import replace
from translate.ir import (
    BYTE_TESTS,
    RANDOM_RANGE,
    Account,
    Action,
    AnyOf,
    Apply,
    BytecodeTest,
    CgroupTest,
    Choose,
    ClusterShare,
    ConnectionLimit,
    ConnLabel,
    Family,
    Field,
    FieldTest,
    Goto,
    HashLimit,
    HeaderOptions,
    Interval,
    Jump,
    Limit,
    Lookup,
    LoweredChain,
    Name,
    Nth,
    Program,
    Quota,
    Random,
    Recent,
    Return,
    SetTest,
    SetUpdate,
    Statement,
    Test,
    WordTest,
    field_bits,
)
from translate.ir.intervals import IntervalSet, covers, intersection, intervals, subtraction, union
from translate.passes.calls import callee, callees_first
from translate.passes.control import terminal
from translate.passes.facts import ALWAYS_PRESENT, NOTHING, everything, implied, impossible, refine
from translate.passes.structural_sharing import holding, is_same

__all__ = ["canonical", "normalise"]

_HEADER_FIELDS: Final = frozenset(
    {Field.SPORT, Field.DPORT, Field.ICMP_TYPE, Field.ICMP_CODE, Field.TCP_FLAGS}
)
_BOUND_FIELDS: Final = _HEADER_FIELDS | {Field.FRAGMENT, Field.L4PROTO}
_ORDERED: Final = frozenset({Nth, Limit, ConnectionLimit, Quota})
"""Tests that count the packets that pass the tests before them."""
_AGAIN: Final = (AnyOf, SetTest, CgroupTest, *BYTE_TESTS)
"""Tests that may be evaluated again, apart from those of a field."""
_NEVER: Final = Random(numerator=0)
_MOST_ACTIONS: Final = 64
"""The greatest number of actions of an inlined chain, because each level of chains may double them."""


def normalise(program: Program) -> Program:
    """Return the Program with canonical tests and with chains of effects inlined."""
    bodies: dict[str, tuple[Action, ...]] = {}
    changed: dict[str, LoweredChain] = {}
    for chain in callees_first(program):
        statements = _statements(chain, bodies, program.family)
        changed[chain.name] = holding(chain, statements)
        if chain.hook is None and (body := _body(statements)) is not None:
            bodies[chain.name] = body
    return replace(program, chains=tuple(changed[chain.name] for chain in program.chains))


def _statements(
    chain: LoweredChain, bodies: dict[str, tuple[Action, ...]], family: Family
) -> list[Statement]:
    kept: list[Statement] = []
    for statement in chain.statements:
        tests = canonical(statement.tests, family) if statement.tests else ()
        if tests is not None:
            kept.append(_rebuilt(statement, tests, bodies))
    return kept


def _rebuilt(
    statement: Statement, tests: tuple[Test, ...], bodies: dict[str, tuple[Action, ...]]
) -> Statement:
    """Return the statement with these tests and with calls of chains replaced by their ``bodies``."""
    match statement:
        case Apply():
            actions = _inlined(statement.actions, bodies)
            if tests is statement.tests and actions is statement.actions:
                return statement
            return Apply(tests=tests, actions=actions, origin=statement.origin)
        case Lookup():
            entries = tuple(replace(e, actions=_inlined(e.actions, bodies)) for e in statement.entries)
            return replace(statement, tests=tests, entries=entries)
        case Choose():
            branches = tuple(replace(b, actions=_inlined(b.actions, bodies)) for b in statement.branches)
            return replace(statement, tests=tests, branches=branches)


def _body(statements: list[Statement]) -> tuple[Action, ...] | None:
    """Return the actions of a chain that does the same few actions to every packet, otherwise None."""
    actions: list[Action] = []
    for statement in statements:
        if not isinstance(statement, Apply) or statement.tests:
            return None
        if any(isinstance(action, Jump | Goto) for action in statement.actions):
            return None
        for action in statement.actions:
            if isinstance(action, Return):
                return tuple(actions)
            if len(actions) == _MOST_ACTIONS:
                return None
            actions.append(action)
            if terminal(action):
                return tuple(actions)
    return tuple(actions)


def _inlined(actions: tuple[Action, ...], bodies: dict[str, tuple[Action, ...]]) -> tuple[Action, ...]:
    name = callee(actions)
    if name is None or name not in bodies:
        return actions
    body = bodies[name]
    if isinstance(actions[-1], Goto) and not (body and terminal(body[-1])):
        body = (*body, Return())
    return actions[:-1] + body


def canonical(tests: tuple[Test, ...], family: Family) -> tuple[Test, ...] | None:
    """Return the tests in canonical form, or None if no packet can pass them all.

    Tests that are already canonical are returned as the same tuple.
    """
    for test in tests:
        if isinstance(test, (Recent, Account, HashLimit, SetUpdate, ConnLabel, ClusterShare)):
            return _around(tests, tests.index(test), family)
    flat: list[Test] = []
    fields: set[Field] = set()
    for test in tests:
        simplified = _field_test(test, family) if isinstance(test, FieldTest) else _single(test, family)
        if simplified is False:
            return None
        if simplified is True:
            continue
        if isinstance(simplified, FieldTest):
            if simplified.field in fields and simplified in flat:
                continue
            fields.add(simplified.field)
        elif isinstance(simplified, _AGAIN) and simplified in flat:
            continue
        flat.append(simplified)
    if len(flat) > 1 and _ORDERED.isdisjoint(map(type, flat)):
        merged = _merge(flat, family)
        if merged is not None and not _HEADER_FIELDS.isdisjoint(fields):
            merged = _consistent(merged, family)
        if merged is None:
            return None
        flat = merged
    elif len(flat) > 2:
        return _until_contradiction(tests if is_same(flat, tests) else tuple(flat), family)
    return tests if is_same(flat, tests) else tuple(flat)


def _until_contradiction(tests: tuple[Test, ...], family: Family) -> tuple[Test, ...] | None:
    """Return the tests up to the first one that contradicts the tests before it.

    None if all of these only compare fields; others may count packets. nft does not load a test of ports
    after tests of two protocols.
    """
    facts = NOTHING
    for index, test in enumerate(tests):
        if isinstance(test, FieldTest):
            facts = refine(facts, (test,), family)
            if impossible(facts):
                compares = all(isinstance(before, FieldTest) for before in tests[:index])
                return None if compares else tests[: index + 1]
    return tests


def _consistent(tests: list[Test], family: Family) -> list[Test] | None:
    """Return the tests without those that the presence of a header implies; None if one contradicts it."""
    fields = [test.field for test in tests if isinstance(test, FieldTest)]
    bound = tuple(
        test
        for test in tests
        if isinstance(test, FieldTest) and (test.field in _BOUND_FIELDS or fields.count(test.field) > 1)
    )
    needed = _needed(bound, family)
    if needed is None or len(needed) == len(bound):
        return None if needed is None else tests
    return [test for test in tests if test not in bound or test in needed]


@lru_cache(maxsize=4096)
def _needed(tests: tuple[FieldTest, ...], family: Family) -> tuple[FieldTest, ...] | None:
    """Return the tests that the others do not imply, or None if no packet can pass them all."""
    if impossible(refine(NOTHING, tests, family)):
        return None
    index = 0
    while index < len(tests):
        others = (*tests[:index], *tests[index + 1 :])
        if _headers(others) and implied(tests[index], refine(NOTHING, others, family), family):
            tests = others
        else:
            index += 1
    return tests


def _headers(tests: Iterable[Test]) -> bool:
    """Return whether one of the tests implies that a header is present, which other fields need."""
    return any(isinstance(test, FieldTest) and test.field in _HEADER_FIELDS for test in tests)


def _around(tests: tuple[Test, ...], index: int, family: Family) -> tuple[Test, ...] | None:
    """Canonicalise the tests before and those after the first test with an effect, each group by itself."""
    before, behind = canonical(tests[:index], family), canonical(tests[index + 1 :], family)
    if before is None:
        return None
    if behind is None:
        behind = (_NEVER,)  # no packet passes, but the list changes or the object counts
    return _until_contradiction((*before, tests[index], *behind), family)


def _single(test: Test, family: Family) -> Test | bool:
    """Return a test in canonical form; True or False if it holds for every packet or for none."""
    match test:
        case FieldTest():
            return _field_test(test, family)
        case AnyOf():
            return _any_of(test, family)
        case Random():
            share = RANDOM_RANGE - test.numerator if test.negated else test.numerator
            if share <= 0 or share >= RANDOM_RANGE:
                return share > 0
            return Random(numerator=share) if test.negated else test
        case (
            Nth()
            | Limit()
            | HashLimit()
            | ConnectionLimit()
            | Quota()
            | Recent()
            | SetTest()
            | SetUpdate()
            | ConnLabel()
            | ClusterShare()
            | Account()
        ):
            return test
        case WordTest() | HeaderOptions() | BytecodeTest() | CgroupTest():
            return test
        case _:
            assert_never(test)


def _field_test(test: FieldTest, family: Family) -> Test | bool:
    if test.field.is_name:
        everyone = any(isinstance(v, Name) and v.wildcard and not v.text for v in test.values)
        everyone = everyone and test.field in ALWAYS_PRESENT
        return not test.negated if everyone else test
    whole = everything(test.field, family)
    if test.mask is None and len(test.values) == len(whole) == 1:
        value, all_values = test.values[0], whole[0]
        assert isinstance(value, Interval)
        low, high = all_values.low, all_values.high
        if low <= value.low and value.high <= high and (low != value.low or value.high != high):
            return test
    mask = None if test.mask == (1 << field_bits(test.field, family)) - 1 else test.mask
    values = _possible(intervals(test.values), mask, whole)
    if mask == 0:
        every = any(0 in v for v in values)
        never = not every
    else:
        every, never = mask is None and values == whole, not values
    if test.negated:
        every, never = never, every
    if never:
        return False
    if every and test.field in ALWAYS_PRESENT:
        return True
    if every:
        return FieldTest(field=test.field, values=whole)
    return test if values == test.values and mask == test.mask else replace(test, values=values, mask=mask)


def _possible(values: IntervalSet, mask: int | None, whole: IntervalSet) -> IntervalSet:
    values = intersection(values, whole)
    if mask is None:
        return values
    # (field & mask) has no bits outside the mask, so such a point never matches; an interval may.
    return tuple(v for v in values if not v.is_point or v.low & ~mask == 0)


def _any_of(test: AnyOf, family: Family) -> Test | bool:
    parts: list[FieldTest] = []
    for part in test.tests:
        simplified = _field_test(part, family)
        if simplified is True:
            return not test.negated
        if isinstance(simplified, FieldTest) and simplified not in parts:
            parts.append(simplified)
    parts = _united(parts)
    if not parts:
        return test.negated
    if len(parts) == 1 and not test.negated:
        return parts[0]
    if len(parts) == 1 and parts[0].field in ALWAYS_PRESENT:
        return _field_test(replace(parts[0], negated=not parts[0].negated), family)
    return AnyOf(tests=tuple(parts), negated=test.negated)


def _united(parts: list[FieldTest]) -> list[FieldTest]:
    """Unite positive parts on the same field and mask; others stay as they are."""
    united: dict[tuple[Field, int | None], FieldTest] = {}
    rest: list[FieldTest] = []
    for part in parts:
        if part.negated or part.field.is_name:
            rest.append(part)
            continue
        key = (part.field, part.mask)
        if key in united:
            values = union(v for v in (*united[key].values, *part.values) if isinstance(v, Interval))
            united[key] = replace(part, values=values)
        else:
            united[key] = part
    return [*united.values(), *rest]


def _merge(tests: list[Test], family: Family) -> list[Test] | None:
    """Intersect field tests on the same field and mask; None if no value is left."""
    keys = [(test.field, test.mask) for test in tests if isinstance(test, FieldTest)]
    if len(set(keys)) == len(keys):
        return tests
    merged: dict[object, Test] = {}
    for index, test in enumerate(tests):
        if not isinstance(test, FieldTest) or test.field.is_name:
            merged[index] = test
            continue
        key = (test.field, test.mask)
        before = merged.get(key)
        if before is None:
            merged[key] = test
            continue
        assert isinstance(before, FieldTest)
        both = _both(before, test, family)
        if both is None:
            return None
        merged[key] = both
    return list(merged.values())


def _both(a: FieldTest, b: FieldTest, family: Family) -> FieldTest | None:
    first, second = intervals(a.values), intervals(b.values)
    whole = everything(a.field, family)
    if a.negated and b.negated:
        result = replace(a, values=union((*first, *second)))
        return None if covers(union((*first, *second)), whole) else result
    if a.negated:
        result = replace(b, values=subtraction(second, first))
    elif b.negated:
        result = replace(a, values=subtraction(first, second))
    else:
        result = replace(a, values=intersection(first, second))
    return result if result.values else None
