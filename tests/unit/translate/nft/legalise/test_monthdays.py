"""Days of the month as intervals of the clock."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backends.model.clock import clock_value
from translate.ir import Field, FieldTest, Interval
from translate.nft import emit
from translate.nft.legalise.monthdays import on_clock
from translate.passes import lower
from translate.read import read_ruleset

LAST = (1 << 32) - 1
DAY = 86400


@pytest.mark.parametrize("field", [Field.CLOCK_MONTHDAY, Field.CLOCK_MONTHDAY_BEFORE])
@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("days", [(1,), (15,), (31,), (28, 29, 30), (1, 31), (2, 30)])
def test_the_intervals_have_the_days_of_every_month(
    field: Field, negated: bool, days: tuple[int, ...]
) -> None:
    test = FieldTest(field=field, values=tuple(map(Interval.point, days)), negated=negated)
    turned = on_clock(test)
    assert turned.field is Field.CLOCK
    assert not turned.negated
    values = [value for value in turned.values if isinstance(value, Interval)]
    assert values == sorted(values)
    lows, highs = {value.low for value in values}, {value.high for value in values}
    inside = False
    for midnight in range(0, LAST, DAY):
        inside = (midnight in lows or inside) and midnight - 1 not in highs
        inside = inside or midnight in lows
        expected = (clock_value(field, midnight) in days) is not negated
        assert inside is expected, datetime.fromtimestamp(midnight, UTC)
    ends = lows | {high + 1 for high in highs}
    assert all(end % DAY == 0 or end == LAST + 1 for end in ends)


def test_no_nanosecond_is_left_out_or_too_many() -> None:
    rule = "-A INPUT -m time --monthdays 31 --datestop 1970-04-01 -j DROP"
    rules = f"*filter\n:INPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    text = emit(lower(read_ruleset(rules.encode(), name="rules"), level=0)).text
    first, second = 30 * DAY, 89 * DAY
    assert f"meta time {{ {first}-{first + DAY}, {second}-{second + DAY}, " in text
    assert f" meta time != {{ {first + DAY}, {second + DAY}, " in text
