from __future__ import annotations

import pytest

from tests.unit.translate.rules import program, statements
from translate.ir import (
    AnyOf,
    Apply,
    ConnectionState,
    Drop,
    Family,
    Field,
    FieldTest,
    Interval,
    Jump,
    Name,
    Nth,
    Random,
    Return,
    SetMark,
    Test,
)
from translate.passes import verify
from translate.passes.normalise import canonical, normalise


def is_(field: Field, *values: int, mask: int | None = None, negated: bool = False) -> FieldTest:
    return FieldTest(field=field, values=tuple(map(Interval.point, values)), mask=mask, negated=negated)


def form(*tests: Test) -> tuple[Test, ...] | None:
    return canonical(tests, Family.IP)


def test_values_are_sorted_and_joined() -> None:
    assert form(is_(Field.DPORT, 443, 80, 81, 80)) == (
        FieldTest(field=Field.DPORT, values=(Interval(80, 81), Interval.point(443))),
    )


def test_tests_of_one_field_are_intersected() -> None:
    low = FieldTest(field=Field.DPORT, values=(Interval(1, 100),))
    assert form(low, is_(Field.DPORT, 50, negated=True)) == (
        FieldTest(field=Field.DPORT, values=(Interval(1, 49), Interval(51, 100))),
    )


@pytest.mark.parametrize(
    "tests",
    [
        (is_(Field.L4PROTO, 6), is_(Field.L4PROTO, 17)),
        (is_(Field.L4PROTO, 6), is_(Field.ICMP_TYPE, 8)),
        (is_(Field.FRAGMENT, 1), is_(Field.DPORT, 53)),
        (is_(Field.MARK, 2, mask=1),),
        (Random(numerator=0),),
        (is_(Field.CT_STATE, *ConnectionState, negated=True),),
        (FieldTest(field=Field.IIF, values=(Name("", wildcard=True),), negated=True),),
    ],
)
def test_what_no_packet_passes_is_dropped(tests: tuple[Test, ...]) -> None:
    assert form(*tests) is None


@pytest.mark.parametrize(
    "test",
    [
        FieldTest(field=Field.SADDR, values=(Interval(0, 0xFFFFFFFF),)),
        FieldTest(field=Field.IIF, values=(Name("", wildcard=True),)),
        is_(Field.MARK, 0, mask=0),
        is_(Field.MARK, 2, mask=1, negated=True),
        is_(Field.CT_STATE, *ConnectionState),
        Random(numerator=1 << 31),
    ],
)
def test_what_always_holds_is_dropped(test: Test) -> None:
    assert form(test) == ()


def test_a_test_that_every_value_passes_still_asks_for_the_field() -> None:
    every = FieldTest(field=Field.DPORT, values=(Interval(0, 65535),))
    assert form(every) == (every,)
    assert form(every, is_(Field.DPORT, 53)) == (is_(Field.DPORT, 53),)
    present = FieldTest(field=Field.CT_MARK, values=(Interval(0, 0xFFFFFFFF),))
    assert form(is_(Field.CT_MARK, 0, mask=0)) == (present,)


def test_a_negated_list_is_negated_as_a_whole() -> None:
    state = is_(Field.CT_STATE, ConnectionState.NEW)
    status = is_(Field.CT_STATUS, 32, mask=32)
    both = AnyOf(tests=(state, status), negated=True)
    assert form(both) == (both,)
    # A state is on every packet, so that one alone can be negated; a status is not.
    assert form(AnyOf(tests=(state,), negated=True)) == (is_(Field.CT_STATE, 8, negated=True),)
    alone = AnyOf(tests=(status,), negated=True)
    assert form(alone) == (alone,)


def test_draws_and_counters_are_never_merged() -> None:
    twice = (Random(numerator=5), Random(numerator=5))
    assert form(*twice) == twice
    nth = Nth(every=2, packet=0)
    assert form(nth, is_(Field.MARK, 1), nth) == (nth, is_(Field.MARK, 1), nth)


def test_a_chain_of_effects_is_inlined() -> None:
    found = normalise(
        program(
            "mangle",
            "-A PREROUTING -s 10.0.0.1/32 -j KUBE-MARK-MASQ",
            "-A PREROUTING -s 10.0.0.2/32 -g KUBE-MARK-MASQ",
            "-A PREROUTING -s 10.0.0.3/32 -j ends",
            "-A PREROUTING -s 10.0.0.4/32 -j asks",
            "-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000",
            "-A ends -j KUBE-MARK-MASQ",
            "-A ends -j DROP",
            "-A asks -p tcp -j DROP",
        )
    )
    mark = SetMark(0x4000, 0x4000)
    actions = [s.actions for s in statements(verify(found), "mangle/PREROUTING") if isinstance(s, Apply)]
    assert actions == [(mark,), (mark, Return()), (mark, Drop()), (Jump("mangle/asks"),)]
