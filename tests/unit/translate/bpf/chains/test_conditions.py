from __future__ import annotations

import pytest

from tests.unit.translate.bpf.chains.test_code import CONTEXT
from translate.bpf.chains.code import Feature
from translate.bpf.chains.conditions import conditions
from translate.ir import Field, FieldTest, Interval


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (2, "(p->options[0] & 0x4ULL) == 0x4ULL"),
        (64, "(p->options[1] & 0x1ULL) == 0x1ULL"),
        (255, "(p->options[3] & 0x8000000000000000ULL) == 0x8000000000000000ULL"),
    ],
)
def test_a_kind_of_option_is_a_bit(kind: int, text: str) -> None:
    bit = 1 << kind
    test = FieldTest(field=Field.TCP_OPTIONS, mask=bit, values=(Interval.point(bit),))
    negated = FieldTest(field=Field.TCP_OPTIONS, mask=bit, values=(Interval.point(bit),), negated=True)
    assert conditions((test,), CONTEXT).text == f"p->has_options && ({text})"
    assert conditions((negated,), CONTEXT).text == f"p->has_options && !({text})"
    assert conditions((test,), CONTEXT).needs.features == {Feature.TCP_OPTIONS}


def test_several_kinds_are_in_several_words() -> None:
    mask = 1 << 3 | 1 << 130
    test = FieldTest(field=Field.TCP_OPTIONS, mask=mask, values=(Interval.point(1 << 3),))
    first, third = "(p->options[0] & 0x8ULL) == 0x8ULL", "(p->options[2] & 0x4ULL) == 0x0ULL"
    assert conditions((test,), CONTEXT).text == f"p->has_options && ({first} && {third})"
