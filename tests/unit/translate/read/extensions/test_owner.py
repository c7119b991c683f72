"""``-m owner``: who has opened a packet's socket."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import AnyOf, Field, FieldTest, Interval, Rule, Test

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


def user(low: int, high: int | None = None) -> FieldTest:
    return FieldTest(field=Field.SOCKET_UID, values=(Interval(low, low if high is None else high),))


def socket(value: int) -> FieldTest:
    return FieldTest(field=Field.SOCKET, values=(Interval.point(value),))


@pytest.mark.parametrize(
    ("words", "tests"),
    [
        ("--uid-owner 1000", (user(1000),)),
        ("--uid-owner root", (user(0),)),
        ("--uid-owner 010-0x10", (user(8, 16),)),
        ("--uid-owner 1:4294967294", (user(1, 0xFFFFFFFE),)),
        # without a socket, what is negated holds
        ("! --uid-owner 5", (AnyOf(tests=(user(5),), negated=True),)),
        ("--socket-exists", (socket(1),)),
        ("! --socket-exists", (socket(0),)),
    ],
)
def test_options(read_rule: ReadRule, words: str, tests: tuple[Test, ...]) -> None:
    assert read_rule(f"-m owner {words}").tests == tests


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "owner needs --uid-owner, --gid-owner or --socket-exists"),
        ("--uid-owner istio", '"istio" is neither the number of a user nor a range of them'),
        ("--gid-owner 4294967295", '"4294967295" is neither the number of a group nor a range of them'),
        ("--uid-owner 5-4", 'range "5-4" ends before it begins'),
        ("--uid-owner 5-", '"5-" is neither the number of a user nor a range of them'),
    ],
)
def test_what_iptables_refuses(read_fault: ReadFault, words: str, message: str) -> None:
    assert read_fault(f"-m owner {words}".strip()).message == message
