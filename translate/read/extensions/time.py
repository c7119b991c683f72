"""``-m time``: the node's clock between two dates, between two times of day, on some days.

Numbers are read as by ``strtoul``: an empty number is 0. Dates are normalised as ``mktime``
does (2026-02-30 is 2026-03-02).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from translate.ir import AnyOf, Field, FieldTest, Interval, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import unsigned_start

__all__ = ["TIME"]

_DAY: Final = 86400
_LAST_DATE: Final = (1 << 31) - 1
"""The default of ``--datestop`` (``time_init``): 2038-01-19T03:14:07."""
_LATEST: Final = (1 << 32) - 1
_NUMBER: Final = re.compile(r"[ \t\n\v\f\r]*\+?(-?)(?=\d)0*(\d{0,20})\d*", re.ASCII)
"""A number. With 20 digits it is out of every range; Python does not read thousands of digits."""
_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ALL_WEEKDAYS: Final = 0xFE
_ALL_MONTHDAYS: Final = 0xFFFFFFFE


def _time(options: Options, _context: Context) -> tuple[Test, ...]:
    begin, end = _date(options, "--datestart", 0), _date(options, "--datestop", _LAST_DATE)
    start, stop = _daytime(options, "--timestart", 0), _daytime(options, "--timestop", _DAY - 1)
    contiguous = options.has("--contiguous")
    if contiguous and start < stop:
        hint = "use it only with a --timestop that is before --timestart"
        raise OptionError("--contiguous needs an interval over midnight", hint=hint)
    tests: list[Test] = [FieldTest(field=Field.CLOCK, values=(Interval(begin, _LATEST),))] if begin else []
    tests.append(FieldTest(field=Field.CLOCK, values=(Interval(0, end),)))
    if start < stop and (start, stop) != (0, _DAY - 1):
        tests.append(FieldTest(field=Field.CLOCK_DAYTIME, values=(Interval(start, stop),)))
    elif start > stop + 1:
        values = (Interval(0, stop), Interval(start, _DAY - 1))
        tests.append(FieldTest(field=Field.CLOCK_DAYTIME, values=values))
    until = stop if contiguous else None
    weekdays = _day_bits(options, "--weekdays", _ALL_WEEKDAYS, _weekday)
    monthdays = _day_bits(options, "--monthdays", _ALL_MONTHDAYS, _monthday)
    if weekdays & _ALL_WEEKDAYS != _ALL_WEEKDAYS:
        days = frozenset(day % 7 for day in range(1, 8) if weekdays >> day & 1)
        before = frozenset((day + 1) % 7 for day in days)
        tests += _on(Field.CLOCK_WEEKDAY, days, Field.CLOCK_WEEKDAY, before, until)
    if monthdays & _ALL_MONTHDAYS != _ALL_MONTHDAYS:
        days = frozenset(day for day in range(1, 32) if monthdays >> day & 1)
        tests += _on(Field.CLOCK_MONTHDAY, days, Field.CLOCK_MONTHDAY_BEFORE, days, until)
    return tuple(tests)


def _on(
    field: Field, days: frozenset[int], field_before: Field, days_before: frozenset[int], until: int | None
) -> tuple[Test, ...]:
    """Return the tests that the day is one of ``days``; before the time ``until``, the day before counts."""
    if not days:
        whole = Interval(0, (1 << (Field.CLOCK_DAYTIME.bits or 0)) - 1)
        return (FieldTest(field=Field.CLOCK_DAYTIME, values=(whole,), negated=True),)  # never
    today, before = _one_of(field, days), _one_of(field_before, days_before)
    if until is None:
        return (today,)
    if until == _DAY - 1:
        return (before,)
    early = FieldTest(field=Field.CLOCK_DAYTIME, values=(Interval(0, until),))
    late = FieldTest(field=Field.CLOCK_DAYTIME, values=(Interval(until + 1, _DAY - 1),))
    return AnyOf(tests=(late, before)), AnyOf(tests=(early, today))


def _one_of(field: Field, days: frozenset[int]) -> FieldTest:
    starts = sorted(day for day in days if day - 1 not in days)
    ends = sorted(day for day in days if day + 1 not in days)
    return FieldTest(field=field, values=tuple(Interval(a, b) for a, b in zip(starts, ends, strict=True)))


def _date(options: Options, name: str, default: int) -> int:
    """Return the seconds since 1970 of ``YYYY[-MM[-DD[Thh[:mm[:ss]]]]]`` (``time_parse_date``)."""
    occurrence = options.find(name)
    if occurrence is None:
        return default
    index, option = occurrence
    text = option.arguments[0]
    numbers = _numbers(text, "--T::")
    limits = ((1970, 2038), (0, 12), (0, 31), (0, 23), (0, 59), (0, 59))
    if numbers is None or any(not a <= n <= b for n, (a, b) in zip(numbers, limits, strict=False)):
        hint = "YYYY[-MM[-DD[Thh[:mm[:ss]]]]], from 1970 to 2038"
        raise OptionError(f'"{text}" is not a date', option=index, hint=hint)
    year, month, day, hour, minute, second = (*numbers, *(1970, 1, 1, 0, 0, 0)[len(numbers) :])
    seconds = _days(year, month) * _DAY + (day - 1) * _DAY + hour * 3600 + minute * 60 + second
    if seconds < 0:
        raise OptionError(f'"{text}" is before 1970', option=index)
    return seconds


def _days(year: int, month: int) -> int:
    """Return the days from 1970 to the first day of a month; month 0 is the December before."""
    if month < 1:
        year, month = year - 1, month + 12
    years = year - 1
    before = years * 365 + years // 4 - years // 100 + years // 400
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    months = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return before + sum(months[: month - 1]) - 719162


def _daytime(options: Options, name: str, default: int) -> int:
    """Return the seconds since midnight of ``hh:mm[:ss]`` (``time_parse_minutes``)."""
    occurrence = options.find(name)
    if occurrence is None:
        return default
    index, option = occurrence
    text = option.arguments[0]
    numbers = _numbers(text, "::") or ()
    fit = all(0 <= n <= most for n, most in zip(numbers, (23, 59, 59), strict=False))
    if len(numbers) < 2 or not fit:
        raise OptionError(f'"{text}" is not a time of day', option=index, hint="hh:mm[:ss], up to 23:59:59")
    hour, minute, second = (*numbers, 0)[:3]
    return hour * 3600 + minute * 60 + second


def _numbers(text: str, separators: str) -> tuple[int, ...] | None:
    """Return the numbers between the separators; the last numbers may be missing. None for other text."""
    numbers: list[int] = []
    for separator in (*separators, ""):
        match = _NUMBER.match(text)
        numbers.append(int(f"{match[1]}{match[2] or 0}") if match else 0)
        text = text[match.end() :] if match else text
        if not text:
            return tuple(numbers)
        if not separator or not text.startswith(separator):
            return None
        text = text[1:]
    return None


def _day_bits(options: Options, name: str, every: int, bit: Callable[[str, int], int]) -> int:
    """Return the bits of a list of days, ``every`` without the option."""
    occurrence = options.find(name)
    if occurrence is None:
        return every
    index, option = occurrence
    bits = 0
    for word in _words(option.arguments[0]):
        bits |= bit(word, index)
    return bits ^ every if option.negated else bits


def _weekday(word: str, option: int) -> int:
    """Return the bit of a day of the week (``time_parse_weekdays``): two letters of a name count."""
    word = word[:3]
    value, end = unsigned_start(word, 999) if word else (0, 0)
    if end == len(word) and value is not None:
        if not value:
            raise OptionError("there is no day 0; Sunday is 7", option=option)
        return 1 << value % 32 & 0xFF
    matching = [n for n, name in enumerate(_WEEKDAYS, 1) if name[:2] == word[:2]]
    if not matching:
        raise OptionError(f'"{word}" is not a day of the week', option=option, hint="Mon to Sun, or 1 to 7")
    return 1 << matching[0]


def _monthday(word: str, option: int) -> int:
    """Return the bit of a day of the month (``time_parse_monthdays``): two characters count."""
    word = word[:2]
    value, end = unsigned_start(word, 99) if word else (0, 0)
    if end != len(word) or value is None or value > 31:
        raise OptionError(f'"{word}" is not a day of the month', option=option, hint="1 to 31")
    return 1 << value


def _words(text: str) -> list[str]:
    """Return the words between commas (``my_strseg``)."""
    words = text.split(",")
    if not words[-1]:
        words.pop()  # the empty word after a final comma, or of an empty text
    return words


TIME: Final = MatchExtension(
    name="time",
    options=(
        *(OptionSpec(name=name) for name in ("--timestart", "--timestop")),
        *(OptionSpec(name=name, invertible=True) for name in ("--monthdays", "--weekdays")),
        *(OptionSpec(name=name) for name in ("--datestart", "--datestop")),
        OptionSpec(name="--utc", arguments=0),
        *(OptionSpec(name=name, arguments=0) for name in ("--kerneltz", "--localtz")),
        OptionSpec(name="--contiguous", arguments=0),
    ),
    meaning=_time,
)
"""``-m time`` (``xt_time``). The kernel's time zone is taken for UTC."""
