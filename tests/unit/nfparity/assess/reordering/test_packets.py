"""Tests of fields of which some values are possible."""

from __future__ import annotations

import pytest

from nfparity.assess.reordering.packets import ANY_PACKET, Possible
from translate.ir import Field, Interval, Name

PORTS = Possible(numbers={Field.DPORT: {80, 443}}, names={Field.IIF: {"eth0"}}, mark_bits=0x4000)


@pytest.mark.parametrize(
    ("low", "high", "negated", "wanted"),
    [
        (80, 443, False, True),
        (80, 80, False, None),
        (90, 100, False, False),
        (90, 100, True, True),
        (80, 443, True, False),
        (80, 80, True, None),
    ],
)
def test_a_test_holds_for_all_values_for_some_or_for_none(
    low: int, high: int, negated: bool, wanted: bool | None
) -> None:
    assert PORTS.test(Field.DPORT, (Interval(low, high),), negated=negated) is wanted


def test_a_field_that_is_not_known_decides_nothing() -> None:
    assert PORTS.test(Field.SPORT, (Interval(0, 65535),)) is None
    assert ANY_PACKET.test(Field.DPORT, (Interval(0, 65535),)) is None


def test_names_of_interfaces() -> None:
    assert PORTS.test(Field.IIF, (Name("eth", wildcard=True),)) is True
    assert PORTS.test(Field.IIF, (Name("eth1"),)) is False
    assert PORTS.test(Field.IIF, (Name("eth1"),), negated=True) is True


@pytest.mark.parametrize(
    ("mask", "value", "negated", "wanted"),
    [
        (0x4000, 0x4000, False, None),
        (0x2000, 0x2000, False, False),
        (0x2000, 0x2000, True, True),
        (0x2000, 0, False, True),
        (0x6000, 0x2000, False, False),
        (None, 0, False, None),
        (None, 1, False, False),
    ],
)
def test_a_mark_has_no_bit_that_no_rule_sets(
    mask: int | None, value: int, negated: bool, wanted: bool | None
) -> None:
    assert PORTS.test(Field.MARK, (Interval.point(value),), mask=mask, negated=negated) is wanted
