"""Constraints that tests put on the fields of a packet.

Tests of a number become intervals; tests with masks and of names stay tests, to be tried on candidates. Tests
with state or chance do not constrain a packet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from harness.corpus.passing import passing
from translate.dataclass import dataclass, replace
from translate.dataclass import field as attribute
from translate.ir import AnyOf, Family, Field, FieldTest, Interval, Name, SetTest, Test, field_bits
from translate.ir.intervals import IntervalSet, intersection, intervals, subtraction

__all__ = ["Constraints", "constraints_of", "opposite"]

_MOST_ALTERNATIVES = 16


@dataclass(frozen=True, slots=True)
class Constraints:
    """The allowed intervals of each field with plain tests, and the masked and name tests."""

    family: Family
    plain: Mapping[Field, IntervalSet]
    masked: tuple[FieldTest, ...]
    named: tuple[FieldTest, ...]
    _checks: dict[Field, tuple[tuple[Interval, ...], tuple[FieldTest, ...]]] = attribute(
        default_factory=dict, init=False, compare=False, repr=False
    )
    """A cache of the intervals and masked tests of each field; a search tries thousands of packets."""

    def values(self, field: Field) -> IntervalSet:
        """Return the intervals that plain tests allow for the field."""
        bits = field_bits(field, self.family)
        return self.plain.get(field, (Interval(0, (1 << bits) - 1),))

    def allows(self, field: Field, value: int) -> bool:
        """Return whether the field may have this value."""
        checks = self._checks.get(field)
        if checks is None:
            checks = self.values(field), tuple(t for t in self.masked if t.field is field)
            self._checks[field] = checks
        for values in checks[0]:
            if values.low <= value <= values.high:
                return not checks[1] or all(_passes(t, value) for t in checks[1])
        return False

    @property
    def fields(self) -> frozenset[Field]:
        """The constrained fields."""
        return frozenset((*self.plain, *(t.field for t in (*self.masked, *self.named))))

    def has(self, field: Field) -> bool:
        """Return whether the field is constrained."""
        return field in self.plain or any(t.field is field for t in (*self.masked, *self.named))

    def allows_name(self, field: Field, name: str) -> bool:
        """Return whether the interface may be called ``name``."""
        tests = (t for t in self.named if t.field is field)
        return all(any(isinstance(v, Name) and v.matches(name) for v in t.values) != t.negated for t in tests)

    def allows_interface(self, name: str, group: int, *, entry: bool) -> bool:
        """Return whether a packet may come in (``entry``) or leave by an interface of this name and group."""
        of_name, of_group = (Field.IIF, Field.IIF_GROUP) if entry else (Field.OIF, Field.OIF_GROUP)
        return self.allows_name(of_name, name) and self.allows(of_group, group)

    def implies(self, test: FieldTest) -> bool:
        """Return whether every packet that satisfies the constraints passes ``test``."""
        if test.mask is not None or test.field.is_name:
            return test in self.masked or test in self.named
        left = self.plain.get(test.field)
        if left is None:
            return False
        values = intervals(test.values)
        return not (intersection(left, values) if test.negated else subtraction(left, values))

    def without(self, *fields: Field) -> Constraints:
        """Return the constraints of all other fields."""
        plain = {f: v for f, v in self.plain.items() if f not in fields}
        return replace(self, plain=plain, masked=tuple(t for t in self.masked if t.field not in fields))

    def swapped(self) -> Constraints:
        """Return the constraints with source and destination swapped: those of the answered packet."""
        plain = {_OTHER_SIDE.get(f, f): v for f, v in self.plain.items()}
        masked, named = (tuple(map(_swapped, tests)) for tests in (self.masked, self.named))
        return replace(self, plain=plain, masked=masked, named=named)


_PAIRS = (
    (Field.SADDR, Field.DADDR),
    (Field.SPORT, Field.DPORT),
    (Field.IIF, Field.OIF),
    (Field.IIF_GROUP, Field.OIF_GROUP),
    (Field.FIB_SADDR_TYPE, Field.FIB_DADDR_TYPE),
)
_OTHER_SIDE = dict(_PAIRS) | {b: a for a, b in _PAIRS}


def _swapped(test: FieldTest) -> FieldTest:
    return replace(test, field=_OTHER_SIDE.get(test.field, test.field))


def _passes(test: FieldTest, value: int) -> bool:
    masked = value if test.mask is None else value & test.mask
    return any(isinstance(v, Interval) and masked in v for v in test.values) != test.negated


def opposite(test: FieldTest | AnyOf | SetTest) -> FieldTest | AnyOf | SetTest:
    """Return the negated test; for a packet that has the field, exactly one of the two holds."""
    return replace(test, negated=not test.negated)


def constraints_of(tests: Iterable[Test], family: Family) -> Iterator[Constraints]:
    """Yield the constraints of packets that pass all tests, one for each choice among alternatives.

    Yields nothing when the tests contradict each other.
    """
    fixed: list[FieldTest] = []
    choices: list[tuple[FieldTest, ...]] = []
    for test in tests:
        match test:
            case FieldTest():
                fixed.append(test)
            case AnyOf(negated=True):
                fixed += [replace(t, negated=not t.negated) for t in test.tests]
            case AnyOf():
                choices.append(test.tests)
            case _:
                pass
    for choice in itertools.islice(itertools.product(*choices), _MOST_ALTERNATIVES):
        constraints = _solved([*fixed, *choice], family)
        if constraints is not None:
            yield constraints


def _lacks(test: FieldTest, family: Family) -> bool:
    """Return whether every packet that has the field fails the negated test."""
    if not test.negated or test.mask is not None or test.field.is_name or test.field.is_always_present:
        return False
    whole = Interval(0, (1 << field_bits(test.field, family)) - 1)
    return not subtraction((whole,), intervals(test.values))


def _solved(tests: list[FieldTest], family: Family) -> Constraints | None:
    # A candidate has the headers that tests name, and no others.
    tests = [test for test in tests if not _lacks(test, family)]
    numbers = [t for t in tests if t.mask is None and not t.field.is_name]
    plain: dict[Field, IntervalSet] = {}
    for field in dict.fromkeys(t.field for t in numbers):
        left = passing(numbers, field, family)
        if not left:
            return None
        plain[field] = left
    masked = tuple(t for t in tests if t.mask is not None)
    if any(replace(t, negated=not t.negated) in masked for t in masked):
        return None
    named = tuple(t for t in tests if t.field.is_name)
    if any(replace(t, negated=not t.negated) in named for t in named):
        return None
    return Constraints(family, plain, masked, named)
