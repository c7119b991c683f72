"""Expected tests of one interval of a field."""

from __future__ import annotations

from translate.ir import Field, FieldTest, Interval

__all__ = ["field_test"]


def field_test(
    field: Field, low: int, high: int | None = None, *, mask: int | None = None, no: bool = False
) -> FieldTest:
    """Return the test for ``low`` to ``high``, by default ``low`` alone; ``no``: negated."""
    value = Interval(low, low if high is None else high)
    return FieldTest(field=field, values=(value,), mask=mask, negated=no)
