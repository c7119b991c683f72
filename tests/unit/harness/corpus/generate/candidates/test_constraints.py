from __future__ import annotations

from harness.corpus.generate.candidates.constraints import constraints_of, opposite
from translate.ir import AnyOf, Family, Field, FieldTest, Interval, Name, Random


def asks(field: Field, *values: Interval | Name, negated: bool = False, mask: int | None = None) -> FieldTest:
    return FieldTest(field=field, values=values, negated=negated, mask=mask)


def point(value: int) -> Interval:
    return Interval.point(value)


def test_tests_of_one_field_meet() -> None:
    ports = asks(Field.DPORT, Interval(10, 20)), asks(Field.DPORT, Interval(15, 30))
    (constraints,) = constraints_of((*ports, asks(Field.DPORT, point(17), negated=True)), Family.IP)
    assert constraints.values(Field.DPORT) == (Interval(15, 16), Interval(18, 20))
    assert constraints.values(Field.SPORT) == (Interval(0, 65535),)
    assert constraints.has(Field.DPORT)
    assert not constraints.has(Field.SPORT)


def test_a_contradiction_wants_nothing() -> None:
    tcp = asks(Field.L4PROTO, point(6))
    assert not list(constraints_of((tcp, opposite(tcp)), Family.IP))
    name = asks(Field.IIF, Name("eth", wildcard=True))
    assert not list(constraints_of((name, opposite(name)), Family.IP))
    bit = asks(Field.MARK, point(4), mask=4)
    assert not list(constraints_of((bit, opposite(bit)), Family.IP))


def test_alternatives_are_tried_one_by_one_and_excluded_together() -> None:
    new, status = asks(Field.CT_STATE, point(8)), asks(Field.CT_STATUS, point(32), mask=32)
    either = AnyOf(tests=(new, status))
    first, second = constraints_of((either,), Family.IP)
    assert first.allows(Field.CT_STATE, 8)
    assert not first.allows(Field.CT_STATE, 2)
    assert second.allows(Field.CT_STATUS, 48)
    assert not second.allows(Field.CT_STATUS, 16)
    (neither,) = constraints_of((opposite(either),), Family.IP)
    assert not neither.allows(Field.CT_STATE, 8)
    assert not neither.allows(Field.CT_STATUS, 32)


def test_chance_asks_nothing_of_a_packet() -> None:
    (constraints,) = constraints_of((Random(numerator=5),), Family.IP)
    assert not any(constraints.has(field) for field in Field)


def test_names_and_masks_are_tried_on_candidates() -> None:
    tests = asks(Field.IIF, Name("eth", wildcard=True)), asks(Field.MARK, point(4), mask=6)
    (constraints,) = constraints_of(tests, Family.IP)
    assert constraints.allows_name(Field.IIF, "eth0")
    assert not constraints.allows_name(Field.IIF, "pod0")
    assert constraints.allows(Field.MARK, 0xF4)
    assert not constraints.allows(Field.MARK, 6)


def test_the_answers_packet_has_its_sides_swapped() -> None:
    tests = asks(Field.SADDR, point(1)), asks(Field.DPORT, point(53)), asks(Field.OIF, Name("eth0"))
    (constraints,) = constraints_of(tests, Family.IP)
    other = constraints.swapped()
    assert other.values(Field.DADDR) == (point(1),)
    assert other.values(Field.SPORT) == (point(53),)
    assert not other.allows_name(Field.IIF, "pod0")
    assert other.swapped() == constraints


def test_what_is_implied() -> None:
    (constraints,) = constraints_of((asks(Field.DADDR, Interval(16, 31)),), Family.IP)
    assert constraints.implies(asks(Field.DADDR, Interval(0, 255)))
    assert constraints.implies(asks(Field.DADDR, point(15), negated=True))
    assert not constraints.implies(asks(Field.DADDR, point(16)))
    assert not constraints.implies(asks(Field.SADDR, Interval(0, 2**32 - 1)))
