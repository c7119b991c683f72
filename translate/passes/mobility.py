"""The packets that ``-m mh`` drops, as rules of their own.

``mh_mt6`` drops a packet whose Mobility Header has another protocol after it than "none"
(``par->hotdrop``), whatever the rule's action, provided that all earlier tests of the rule hold. So a rule
with this match becomes two: the first has the earlier tests and drops these packets, and the second is the
rule itself. The earlier tests are evaluated twice, so none of them may count, draw or keep a state.
"""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal
from translate.ir import (
    BYTE_TESTS,
    NO_NEXT_HEADER,
    AnyOf,
    Apply,
    CgroupTest,
    Drop,
    Field,
    FieldTest,
    Interval,
    Rule,
    SetTest,
)

__all__ = ["dropped_first", "order_refused"]

_AGAIN: Final = (FieldTest, AnyOf, SetTest, CgroupTest, *BYTE_TESTS)
"""Tests that may be evaluated again."""
_GOES_ON: Final = FieldTest(field=Field.MH_NEXT, values=(Interval.point(NO_NEXT_HEADER),), negated=True)


def dropped_first(rule: Rule) -> Apply | None:
    """Return the statement that drops packets before the rule, or None."""
    at = _place(rule)
    if at is None:
        return None
    return Apply(tests=(*rule.tests[:at], _GOES_ON), actions=(Drop(),), origin=rule.origin)


def order_refused(rule: Rule) -> Refusal | None:
    """Return the refusal of a rule in which a test before ``-m mh`` cannot be evaluated twice, or None."""
    at = _place(rule)
    if at is None or all(isinstance(test, _AGAIN) for test in rule.tests[:at]):
        return None
    reason = "a test before -m mh counts, draws or keeps a state"
    return Refusal(rule.origin, "translate", "mh-order", reason)


def _place(rule: Rule) -> int | None:
    tests = enumerate(rule.tests)
    return next((i for i, t in tests if isinstance(t, FieldTest) and t.field is Field.MH_TYPE), None)
