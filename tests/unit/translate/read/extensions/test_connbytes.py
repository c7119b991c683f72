"""``-m connbytes``: the fields by direction and mode, ranges, and their negation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import Field, FieldTest, Interval, Rule

MOST = (1 << 64) - 1
PACKETS = "--connbytes-mode packets --connbytes-dir original"


@pytest.mark.parametrize(
    ("words", "low", "high", "negated"),
    [
        ("--connbytes 10", 10, MOST, False),
        ("--connbytes 0x10:020", 16, 16, False),
        ("--connbytes :20", 0, 20, False),
        ("--connbytes 20:", 20, MOST, False),
        ("! --connbytes 10:20", 10, 20, True),
        ("! --connbytes 10", 10, MOST, True),
        ("! --connbytes 5:5", 5, 5, False),  # from and to are equal in either order
    ],
)
def test_ranges(read_rule: Callable[..., Rule], words: str, low: int, high: int, negated: bool) -> None:
    values = (Interval(low, high),)
    expected = FieldTest(field=Field.CT_ORIGINAL_PACKETS, values=values, negated=negated)
    assert read_rule(f"-m connbytes {words} {PACKETS}").tests == (expected,)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("packets --connbytes-dir both", Field.CT_PACKETS),
        ("bytes --connbytes-dir original", Field.CT_ORIGINAL_BYTES),
        ("bytes --connbytes-dir reply", Field.CT_REPLY_BYTES),
        ("avgpkt --connbytes-dir both", Field.CT_AVERAGE),
        ("avgpkt --connbytes-dir reply", Field.CT_REPLY_AVERAGE),
    ],
)
def test_fields(read_rule: Callable[..., Rule], words: str, field: Field) -> None:
    (test,) = read_rule(f"-m connbytes --connbytes 1:2 --connbytes-mode {words}").tests
    assert isinstance(test, FieldTest)
    assert test.field is field


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--connbytes 1 --connbytes-dir both", 'connbytes needs the option "--connbytes-mode"'),
        ("--connbytes 1 --connbytes-mode bytes", 'connbytes needs the option "--connbytes-dir"'),
        (PACKETS, 'connbytes needs the option "--connbytes"'),
        (f"--connbytes 9:5 {PACKETS}", 'range "9:5" ends before it begins'),
        (
            f"--connbytes 18446744073709551616 {PACKETS}",
            '"18446744073709551616" is not a number from 0 to 18446744073709551615',
        ),
        (
            "--connbytes 1 --connbytes-mode packet --connbytes-dir both",
            '"packet" is not one of packets, bytes, avgpkt',
        ),
        (
            "--connbytes 1 --connbytes-mode bytes --connbytes-dir ORIGINAL",
            '"ORIGINAL" is not one of original, reply, both',
        ),
    ],
)
def test_faults(read_fault: Callable[..., Diagnostic], words: str, message: str) -> None:
    assert read_fault(f"-m connbytes {words}").message == message
