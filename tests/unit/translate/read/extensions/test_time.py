"""``-m time``: dates, times of day and days as tests of the clock; what iptables rejects is rejected."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from translate.errors import Diagnostic
from translate.ir import AnyOf, Field, FieldTest, Interval, Rule, Test

LATEST = (1 << 32) - 1
TO_2038 = FieldTest(field=Field.CLOCK, values=(Interval(0, (1 << 31) - 1),))


def seconds(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp())  # type: ignore[arg-type,misc]


def field(name: Field, *values: tuple[int, int]) -> FieldTest:
    return FieldTest(field=name, values=tuple(Interval(low, high) for low, high in values))


def daytime(*values: tuple[int, int]) -> FieldTest:
    return field(Field.CLOCK_DAYTIME, *values)


def on(*values: tuple[int, int]) -> FieldTest:
    return field(Field.CLOCK_WEEKDAY, *values)


NEVER = FieldTest(field=Field.CLOCK_DAYTIME, values=(Interval(0, 131071),), negated=True)


@pytest.mark.parametrize(
    ("words", "tests"),
    [
        ("", ()),
        ("--utc", ()),
        ("--timestart 00:00 --timestop 23:59:59", ()),
        ("--timestart 8:00 --timestop 17:00:30", (daytime((28800, 61230)),)),
        ("--timestart 08:", (daytime((28800, 86399)),)),
        ("--timestop :30", (daytime((0, 1800)),)),
        ("--timestart 22:00 --timestop 06:00", (daytime((0, 21600), (79200, 86399)),)),
        ("--timestart 12:00 --timestop 12:00", ()),
        ("--timestart 12:00:01 --timestop 12:00", ()),
        ("--weekdays Mon,2,Wednesday", (on((1, 3)),)),
        ("--weekdays Sat,Sun", (on((0, 0), (6, 6)),)),
        ("! --weekdays 6,7", (on((1, 5)),)),
        ("--weekdays 1,2,3,4,5,6,7", ()),
        ("! --weekdays 32", ()),  # as the processor shifts
        ("! --weekdays Mo,Tu,We,Th,Fr,Sa,Su", (NEVER,)),
        ("--weekdays 8", (NEVER,)),
        ("--monthdays 1,2,31", (field(Field.CLOCK_MONTHDAY, (1, 2), (31, 31)),)),
        ("! --monthdays 1,31", (field(Field.CLOCK_MONTHDAY, (2, 30)),)),
        ("--monthdays 0", (NEVER,)),
        (
            "--timestart 22:00 --timestop 06:00 --weekdays Sat --contiguous",
            (
                daytime((0, 21600), (79200, 86399)),
                AnyOf(tests=(daytime((21601, 86399)), on((0, 0)))),
                AnyOf(tests=(daytime((0, 21600)), on((6, 6)))),
            ),
        ),
        (
            "--timestart 12:00 --timestop 12:00 --monthdays 31 --contiguous",
            (
                AnyOf(tests=(daytime((43201, 86399)), field(Field.CLOCK_MONTHDAY_BEFORE, (31, 31)))),
                AnyOf(tests=(daytime((0, 43200)), field(Field.CLOCK_MONTHDAY, (31, 31)))),
            ),
        ),
        ("--timestart 23:59:59 --weekdays Sat --contiguous", (on((0, 0)),)),
    ],
)
def test_days_and_times(read_rule: Callable[..., Rule], words: str, tests: tuple[Test, ...]) -> None:
    assert read_rule(f"-m time {words}").tests == (TO_2038, *tests)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026", (2026, 1, 1)),
        ("2026-12", (2026, 12, 1)),
        ("2024-02-29", (2024, 2, 29)),
        ("2026-02-31", (2026, 3, 3)),  # mktime normalises
        ("2026-00", (2025, 12, 1)),
        ("2026-01-00", (2025, 12, 31)),
        ("2026-01-05T12", (2026, 1, 5, 12)),
        ("2026-01-05T12:30:59", (2026, 1, 5, 12, 30, 59)),
        ("2026-1-5T", (2026, 1, 5)),
        ("2038-01-19T03:14:08", (2038, 1, 19, 3, 14, 8)),
        ("2000-03-01", (2000, 3, 1)),
    ],
)
def test_dates(read_rule: Callable[..., Rule], text: str, date: tuple[int, ...]) -> None:
    start = field(Field.CLOCK, (seconds(*date), LATEST))
    assert read_rule(f"-m time --datestart {text}").tests == (start, TO_2038)
    assert read_rule(f"-m time --datestop {text}").tests == (field(Field.CLOCK, (0, seconds(*date))),)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--timestart 24:00", '"24:00" is not a time of day'),
        ("--timestart 12", '"12" is not a time of day'),
        ("--timestart -1:00", '"-1:00" is not a time of day'),
        ("--timestop 12:00:60", '"12:00:60" is not a time of day'),
        ("--timestop 1:2:3:4", '"1:2:3:4" is not a time of day'),
        ("--datestart 2039", '"2039" is not a date'),
        ("--datestart 2026-13", '"2026-13" is not a date'),
        ("--datestart 2026--1", '"2026--1" is not a date'),
        ("--datestop 2026-01-05T12:00:00Z", '"2026-01-05T12:00:00Z" is not a date'),
        ("--datestart 1970-00", '"1970-00" is before 1970'),
        ("--weekdays 0", "there is no day 0; Sunday is 7"),
        ("--weekdays Mon,,Tue", "there is no day 0; Sunday is 7"),
        ("--weekdays mon", '"mon" is not a day of the week'),
        ("--monthdays 32", '"32" is not a day of the month'),
        ("--monthdays 5x", '"5x" is not a day of the month'),
        ("--contiguous", "--contiguous needs an interval over midnight"),
        ("--timestart 06:00 --timestop 22:00 --contiguous", "--contiguous needs an interval over midnight"),
    ],
)
def test_faults(read_fault: Callable[..., Diagnostic], words: str, message: str) -> None:
    assert read_fault(f"-m time {words}").message == message


def test_a_number_may_have_any_length(read_fault: Callable[..., Diagnostic]) -> None:
    assert "1111" in read_fault(f"-m time --datestop {'1' * 5000}").message
    assert "2222" in read_fault(f"-m time --timestop {'2' * 5000}:00").message


def test_the_time_zone_of_the_kernel_is_taken_for_utc(read_rule: Callable[..., Rule]) -> None:
    for option in ("--kerneltz", "--localtz"):
        rule = read_rule(f"-m time --weekdays Mon {option}")
        assert rule.tests == read_rule("-m time --weekdays Mon").tests
        assert not rule.unknown
