"""Ordinary rules: each test is one match and each action one statement, whatever their constants are.

Nearly all rules of a large ruleset are ordinary. The fields of their tests and the kinds of their actions
show that none of the expansions of ``alternatives`` and ``rules`` applies, and that no test needs a mask
(``apart``). They are written without these steps, which takes half of the time.
"""

from __future__ import annotations

from typing import Final

from translate.ir import (
    Accept,
    Apply,
    Dnat,
    Drop,
    Field,
    FieldTest,
    Goto,
    Jump,
    Masquerade,
    Random,
    Reject,
    Return,
    SetMark,
)
from translate.nft.legalise.headers import transports
from translate.nft.legalise.natports import needs_transport

__all__ = ["is_ordinary"]

_TESTS: Final = frozenset(
    {
        Field.SADDR,
        Field.DADDR,
        Field.L4PROTO,
        Field.DPORT,
        Field.MARK,
        Field.IIF,
        Field.OIF,
        Field.CT_STATE,
        Field.FIB_DADDR_TYPE,
        Random,
    }
)
"""Fields and kinds of tests that are always one match, and that nft does not join with each other."""

_ACTIONS: Final = frozenset({Accept, Drop, Return, Jump, Goto, SetMark, Dnat, Masquerade, Reject})
"""Kinds of actions that are always one statement, except for ports that need a protocol."""


def is_ordinary(apply: Apply) -> bool:
    """Return whether each test of the rule is one match, and each action one statement."""
    tests, actions = apply.tests, apply.actions
    if not actions or not _ACTIONS.issuperset(map(type, actions)):
        return False
    if not _TESTS.issuperset([test.field if isinstance(test, FieldTest) else type(test) for test in tests]):
        return False
    return not any(map(needs_transport, actions)) or bool(transports(tests))
