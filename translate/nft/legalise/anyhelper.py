"""``-m helper --helper ''``, any helper: nft compares a helper's name, and has no test that there is one.

``ct helper`` fails without a helper (``nft_ct_get_eval``), negated or not. So any helper is one that has a
certain name, or one that does not have it.
"""

from __future__ import annotations

from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Name, Test

__all__ = ["with_names"]

_ANY: Final = Name("", wildcard=True)
_NAMED: Final = FieldTest(field=Field.CT_HELPER, values=(Name("ftp"),))
_NAMED_OR_NOT: Final = (_NAMED, FieldTest(field=Field.CT_HELPER, values=_NAMED.values, negated=True))


def with_names(tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """Return equal tests, without one for any helper."""
    return tuple(each for test in tests for each in _with_names(test))


def _with_names(test: Test) -> tuple[Test, ...]:
    match test:
        case FieldTest() if _is_any(test):
            # Negated, it never holds: no helper both has the name and does not have it.
            return _NAMED_OR_NOT if test.negated else (AnyOf(tests=_NAMED_OR_NOT),)
        case AnyOf(tests=parts) if any(map(_is_any, parts)):
            expanded = tuple(each for part in parts for each in (_NAMED_OR_NOT if _is_any(part) else (part,)))
            return (AnyOf(tests=expanded, negated=test.negated),)
        case _:
            return (test,)


def _is_any(test: FieldTest) -> bool:
    return test.field is Field.CT_HELPER and _ANY in test.values
