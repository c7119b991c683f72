"""``-m statistic``: a random share of the packets, or every n-th packet."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from translate.ir import RANDOM_RANGE, Nth, Random, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec, parse_mark
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import decimal

__all__ = ["STATISTIC", "random_numerator"]


def random_numerator(text: str) -> int | None:
    """Return ``lround(0x80000000 * strtod(text))``, as ``libxt_statistic`` does, or None for other text.

    ``strtod`` rounds to the nearest double, as ``float`` does; the product with 2**31 is exact,
    and ``lround`` takes halves away from zero.
    """
    probability = decimal(text)
    if probability is None or not 0.0 <= probability <= 1.0:
        return None
    return int(Fraction(probability) * RANDOM_RANGE + Fraction(1, 2))


def _random(options: Options) -> Random:
    for index, option in enumerate(options):
        if option.name in ("--every", "--packet"):
            raise OptionError(f'"{option.name}" belongs to mode nth', option=index, argument=0)
    index, option = options.need("--probability", "statistic in mode random")
    numerator = random_numerator(option.arguments[0])
    if numerator is None:
        raise OptionError(
            f'"{option.arguments[0]}" is not a probability', option=index, hint="a decimal from 0 to 1"
        )
    return Random(numerator=numerator, negated=option.negated)


def _nth(options: Options) -> Nth:
    occurrence = options.find("--probability")
    if occurrence is not None:
        raise OptionError('"--probability" belongs to mode random', option=occurrence[0], argument=0)
    every_index, every = options.need("--every", "statistic in mode nth")
    count = parse_mark(every.arguments[0], option=every_index)
    if count == 0:
        raise OptionError("--every must be at least 1", option=every_index)
    occurrence = options.find("--packet")
    if occurrence is None:
        hint = "older releases of iptables assumed --packet 0"
        raise OptionError(
            '"--every" needs "--packet" in the same match', option=every_index, argument=0, hint=hint
        )
    index, option = occurrence
    packet = parse_mark(option.arguments[0], option=index)
    if packet >= count:
        raise OptionError(f"packet {packet} is not below {count}", option=index)
    return Nth(every=count, packet=packet, negated=every.negated)


def _statistic(options: Options, _context: Context) -> tuple[Test, ...]:
    index, mode = options.need("--mode", "statistic")
    match mode.arguments[0]:
        case "random":
            return (_random(options),)
        case "nth":
            return (_nth(options),)
        case other:
            raise OptionError(f'unknown mode "{other}"', option=index, hint="random or nth")


STATISTIC: Final = MatchExtension(
    name="statistic",
    options=(
        OptionSpec(name="--mode"),
        OptionSpec(name="--probability", invertible=True),
        OptionSpec(name="--every", invertible=True),
        OptionSpec(name="--packet"),
    ),
    meaning=_statistic,
)
"""``-m statistic`` (``xt_statistic``). The nth counter starts at ``every - 1 - packet``, so that
the first match comes after ``packet`` others (``statistic_mt_check`` in ``libxt_statistic``)."""
