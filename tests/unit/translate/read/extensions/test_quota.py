"""``-m quota``: the number of bytes, negated or not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import Quota, Rule


@pytest.mark.parametrize(
    ("words", "test"),
    [
        ("--quota 0", Quota(size=0)),
        ("! --quota 0x400", Quota(size=1024, negated=True)),
        ("--quota 18446744073709551615", Quota(size=(1 << 64) - 1)),
    ],
)
def test_quota(read_rule: Callable[..., Rule], words: str, test: Quota) -> None:
    assert read_rule(f"-m quota {words}").tests == (test,)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", 'quota needs the option "--quota"'),
        ("--quota -1", '"-1" is not a number from 0 to 18446744073709551615'),
    ],
)
def test_faults(read_fault: Callable[..., Diagnostic], words: str, message: str) -> None:
    assert read_fault(f"-m quota {words}".strip()).message == message
