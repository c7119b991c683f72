"""Certainty about tests of later packets, against every packet that they stand for."""

from __future__ import annotations

from itertools import product

import pytest

from translate.ir import (
    AnyOf,
    ConnectionState,
    Field,
    FieldTest,
    Hook,
    Interval,
    Name,
    Random,
    TableName,
    TcpFlag,
)
from translate.nft.limits.laterpackets import Truth, all_hold, holds, later_packets

DEVICES = frozenset({"eth0", "eth1"})
(FORWARD,) = later_packets(Hook.FORWARD, TableName.FILTER, DEVICES, unchecked=True)


def of_field(field: Field, *values: int, mask: int | None = None, negated: bool = False) -> FieldTest:
    return FieldTest(field=field, values=tuple(map(Interval.point, values)), mask=mask, negated=negated)


NOT = [False, True]


@pytest.mark.parametrize("negated", NOT)
@pytest.mark.parametrize(
    ("test", "truth"),
    [
        (of_field(Field.CT_STATE, ConnectionState.ESTABLISHED), Truth.ALWAYS),
        (of_field(Field.CT_STATE, ConnectionState.ESTABLISHED, ConnectionState.RELATED), Truth.ALWAYS),
        (of_field(Field.CT_STATE, ConnectionState.NEW), Truth.NEVER),
        (of_field(Field.L4PROTO, 6), Truth.MAYBE),
        (of_field(Field.L4PROTO, 6, 17, 1), Truth.ALWAYS),
        (of_field(Field.L4PROTO, 1), Truth.NEVER),
        (of_field(Field.DPORT, 53), Truth.MAYBE),
        (of_field(Field.CT_STATUS, 2, mask=2), Truth.ALWAYS),
        (of_field(Field.CT_STATUS, 0, mask=2), Truth.NEVER),
        (of_field(Field.CT_STATUS, 4, mask=4), Truth.MAYBE),
        (of_field(Field.CT_STATUS, 2), Truth.MAYBE),
        (of_field(Field.MARK, 1), Truth.MAYBE),
        (FieldTest(field=Field.IIF, values=(Name("eth", wildcard=True),)), Truth.ALWAYS),
        (FieldTest(field=Field.IIF, values=(Name("eth0"),)), Truth.MAYBE),
        (FieldTest(field=Field.OIF, values=(Name("lo"),)), Truth.NEVER),
    ],
)
def test_a_field(test: FieldTest, truth: Truth, negated: bool) -> None:
    other = {Truth.ALWAYS: Truth.NEVER, Truth.NEVER: Truth.ALWAYS, Truth.MAYBE: Truth.MAYBE}[truth]
    asked = FieldTest(field=test.field, values=test.values, mask=test.mask, negated=negated)
    assert holds(asked, FORWARD) is (other if negated else truth)


@pytest.mark.parametrize(("mask", "value"), list(product(range(8), range(8))))
@pytest.mark.parametrize("negated", NOT)
@pytest.mark.parametrize("unchecked", NOT)
def test_tcp_flags(mask: int, value: int, negated: bool, unchecked: bool) -> None:
    """A segment with FIN or RST is not offloaded, one with SYN unless ``unchecked``; UDP has no flags."""
    packet = later_packets(Hook.FORWARD, TableName.FILTER, DEVICES, unchecked=unchecked)[0]
    kept = TcpFlag.FIN | TcpFlag.RST | (TcpFlag.SYN if unchecked else 0)
    segments = [((flags & mask) == value) is not negated for flags in range(8) if not flags & kept]
    truth = Truth.MAYBE if any(segments) else Truth.NEVER
    assert holds(of_field(Field.TCP_FLAGS, value, mask=mask, negated=negated), packet) is truth


@pytest.mark.parametrize("negated", NOT)
@pytest.mark.parametrize(
    ("states", "truth"),
    [
        ([ConnectionState.ESTABLISHED], Truth.ALWAYS),
        ([ConnectionState.NEW], Truth.MAYBE),
        ([], Truth.MAYBE),
    ],
)
def test_a_list_of_alternatives(states: list[ConnectionState], truth: Truth, negated: bool) -> None:
    alternatives = (
        *(of_field(Field.CT_STATE, state) for state in states),
        of_field(Field.CT_STATUS, 32, mask=32),
    )
    other = {Truth.ALWAYS: Truth.NEVER, Truth.MAYBE: Truth.MAYBE}[truth]
    assert holds(AnyOf(tests=alternatives, negated=negated), FORWARD) is (other if negated else truth)


def test_impossible_alternatives() -> None:
    never = (of_field(Field.CT_STATE, ConnectionState.NEW), of_field(Field.L4PROTO, 1))
    assert holds(AnyOf(tests=never), FORWARD) is Truth.NEVER
    assert holds(AnyOf(tests=never, negated=True), FORWARD) is Truth.ALWAYS


def test_all_of_several() -> None:
    always, never = of_field(Field.FRAGMENT, 0), of_field(Field.FRAGMENT, 1)
    maybe = Random(numerator=1)
    assert all_hold((), FORWARD) is Truth.ALWAYS
    assert all_hold((always, maybe), FORWARD) is Truth.MAYBE
    assert all_hold((maybe, never), FORWARD) is Truth.NEVER


def test_invalid_packets_have_no_connection() -> None:
    _, invalid = later_packets(Hook.FORWARD, TableName.FILTER, DEVICES, unchecked=False)
    for negated in NOT:
        assert holds(of_field(Field.CT_MARK, 1, negated=negated), invalid) is Truth.NEVER
    assert holds(of_field(Field.CT_STATE, ConnectionState.INVALID), invalid) is Truth.ALWAYS


@pytest.mark.parametrize(("hook", "field"), [(Hook.PREROUTING, Field.OIF), (Hook.POSTROUTING, Field.IIF)])
def test_a_hook_without_one_of_the_devices(hook: Hook, field: Field) -> None:
    (packet,) = later_packets(hook, TableName.MANGLE, DEVICES, unchecked=True)
    assert holds(FieldTest(field=field, values=(Name("eth", wildcard=True),)), packet) is Truth.NEVER
    assert holds(FieldTest(field=field, values=(Name("eth0"),), negated=True), packet) is Truth.ALWAYS
