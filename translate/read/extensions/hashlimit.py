"""``-m hashlimit``: token buckets, one for each address or port."""

from __future__ import annotations

import re
from typing import Final

from translate.ir import Field, HashLimit, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_rate,
)
from translate.read.spelling.errors import NotModelledError, OptionError
from translate.read.spelling.numbers import leading_digits, unsigned

__all__ = ["HASHLIMIT"]

_SCALE: Final = 1_000_000  # XT_HASHLIMIT_SCALE_v2: an average is in microseconds
_CREDITS: Final = (250 << 39) // _SCALE
"""Credits in a microsecond, the same number for HZ 250 and HZ 1000 (``user2credits``)."""

_U64: Final = (1 << 64) - 1
_DEFAULT_BURST: Final = 5
_MOST_BURST: Final = 1_000_000
_MOST_AVERAGE: Final = 0xFFFFFFFF
_MOST_WINDOW: Final = (1 << 31) - 1
_MODES: Final = {
    "srcip": Field.SADDR,
    "srcport": Field.SPORT,
    "dstip": Field.DADDR,
    "dstport": Field.DPORT,
}
_BYTES: Final = re.compile(r".*[^/]b/s")


def _average(text: str, index: int) -> tuple[int, int]:
    """Return the time for a packet in microseconds, and the seconds of the unit (``parse_rate``)."""
    if _BYTES.match(text):
        raise NotModelledError("a rate in bytes", option=index)
    number, seconds = parse_rate(text, option=index)
    average = _SCALE * seconds // number
    if average == 0:
        raise OptionError(f"{text} is faster than the 1000000 packets a second of xt_hashlimit", option=index)
    return average, seconds


def _key(options: Options) -> tuple[Field, ...]:
    occurrence = options.find("--hashlimit-mode")
    if occurrence is None:
        return ()
    index, option = occurrence
    words = [word for word in re.split("[,|]", option.arguments[0]) if word]
    for word in words:
        if word not in _MODES:
            raise OptionError(f'unknown mode "{word}"', option=index, hint=", ".join(_MODES))
    return tuple(field for word, field in _MODES.items() if word in words)


def _number(options: Options, name: str, default: int, *, least: int = 0, most: int = 0xFFFFFFFF) -> int:
    occurrence = options.find(name)
    if occurrence is None:
        return default
    value = unsigned(occurrence[1].arguments[0], most)
    if value is None or value < least:
        text = occurrence[1].arguments[0]
        raise OptionError(f'"{text}" is not a number from {least} to {most}', option=occurrence[0])
    return value


def _mask(options: Options, name: str, context: Context) -> int:
    bits = context.family.bits
    length = _number(options, name, bits, most=bits)
    return (1 << bits) - (1 << (bits - length))


def _hashlimit(options: Options, context: Context) -> tuple[Test, ...]:
    rates = [(i, o) for i, o in enumerate(options) if o.name in _RATES]
    if len(rates) != 1:
        message = "hashlimit needs either --hashlimit-upto or --hashlimit-above"
        raise OptionError(message, option=rates[1][0] if rates else None, argument=0)
    name_index, name = options.need("--hashlimit-name", "hashlimit")
    if not name.arguments[0]:
        raise OptionError("the name of a table of hashlimit needs at least one character", option=name_index)
    index, rate = rates[0]
    average, seconds = _average(rate.arguments[0], index)
    burst = _number(options, "--hashlimit-burst", _DEFAULT_BURST, least=1, most=_MOST_BURST)
    window = _window(options, seconds)
    if window:
        average //= seconds
        if not 0 < average <= _MOST_AVERAGE:
            raise OptionError(f"{rate.arguments[0]} is no rate of a window of xt_hashlimit", option=index)
        burst += _SCALE // average
    cost, credit = average * _CREDITS & _U64, average * burst * _CREDITS & _U64
    if credit < cost and not window:
        raise OptionError(f"{burst} packets at this rate are more than xt_hashlimit can count", option=index)
    for option in ("--hashlimit-htable-size", "--hashlimit-htable-gcinterval"):
        _number(options, option, 0)
    whole = window or average * burst * _CREDITS == credit
    interval = average * 1000
    return (
        HashLimit(
            name=name.arguments[0],
            key=_key(options),
            source_mask=_mask(options, "--hashlimit-srcmask", context),
            destination_mask=_mask(options, "--hashlimit-dstmask", context),
            interval=interval,
            capacity=interval * burst if whole else credit * interval // cost,
            expire=_number(options, "--hashlimit-htable-expire", seconds * 1000, least=1),
            size=_number(options, "--hashlimit-htable-max", 0),
            above=(rate.name == "--hashlimit-above") is not rate.negated,
            window=window,
        ),
    )


def _window(options: Options, seconds: int) -> int:
    """Return the seconds of a window: those of the rate if there is no other option; 0 for a bucket."""
    interval = options.find("--hashlimit-rate-interval")
    written = 0
    if interval is not None:
        written = leading_digits(interval[1].arguments[0]) or 0
        if not 0 < written <= _MOST_WINDOW:
            raise OptionError(f'"{interval[1].arguments[0]}" is not a number of seconds', option=interval[0])
    return (written or seconds) if options.has("--hashlimit-rate-match") else 0


_RATES: Final = ("--hashlimit-upto", "--hashlimit-above")

HASHLIMIT: Final = MatchExtension(
    name="hashlimit",
    options=(
        OptionSpec(name="--hashlimit-upto", aliases=("--hashlimit",), invertible=True),
        OptionSpec(name="--hashlimit-above", invertible=True),
        *(
            OptionSpec(name=f"--hashlimit-{name}")
            for name in ("burst", "mode", "name", "htable-size", "htable-max", "htable-gcinterval")
        ),
        *(OptionSpec(name=f"--hashlimit-{name}") for name in ("htable-expire", "srcmask", "dstmask")),
        OptionSpec(name="--hashlimit-rate-match", arguments=0),
        OptionSpec(name="--hashlimit-rate-interval"),
    ),
    meaning=_hashlimit,
)
"""``-m hashlimit`` (``xt_hashlimit``, revision 3).

The capacity of a bucket is ``user2credits(average * burst)``, in 64 bits: with an hourly rate it wraps around
above 37 packets. A bucket that no packet has met for ``--hashlimit-htable-expire`` milliseconds is full
again; without the option, this time is the unit of the rate. With ``--hashlimit-rate-match`` the average is
divided by the unit, which is the window unless ``--hashlimit-rate-interval`` gives another one.
"""
