"""``-m limit``: a token bucket per rule."""

from __future__ import annotations

from typing import Final

from translate.ir import Limit, Test
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    parse_mark,
    parse_rate,
)
from translate.read.spelling.errors import OptionError

__all__ = ["LIMIT"]

_SCALE: Final = 10_000  # XT_LIMIT_SCALE: an average is in units of a second divided by this
_DEFAULT_AVERAGE: Final = _SCALE * 3600 // 3
_DEFAULT_BURST: Final = 5
_MOST_BURST: Final = 10_000
_CREDITS: Final = 32_000
"""Credits a second: ``HZ * CREDITS_PER_JIFFY`` of ``xt_limit`` where HZ is 250 or 1000."""

_CREDIT: Final = 10**9 // _CREDITS
_U32: Final = 0xFFFFFFFF


def _average(text: str, index: int) -> int:
    """Return the time for a packet in 1/10000 s (``parse_rate``)."""
    number, seconds = parse_rate(text, option=index)
    average = _SCALE * seconds // number
    if average == 0:
        raise OptionError(f"{text} is faster than the 10000 packets a second of xt_limit", option=index)
    return average


def _credits(average: int) -> int:
    """Return ``user2credits``, which counts in 32 bits."""
    if average > _U32 // _CREDITS:
        return average // _SCALE * _CREDITS & _U32
    return average * _CREDITS // _SCALE


def _limit(options: Options, _context: Context) -> tuple[Test, ...]:
    average, burst = _DEFAULT_AVERAGE, _DEFAULT_BURST
    if (rate := options.find("--limit")) is not None:
        average = _average(rate[1].arguments[0], rate[0])
    if (occurrence := options.find("--limit-burst")) is not None:
        burst = parse_mark(occurrence[1].arguments[0], option=occurrence[0])
        if burst > _MOST_BURST:
            raise OptionError(
                f"--limit-burst {burst} exceeds iptables' limit of {_MOST_BURST}", option=occurrence[0]
            )
    cost, capacity = _credits(average), _credits(average * burst & _U32)
    if burst and capacity >= cost:
        return (Limit(interval=cost * _CREDIT, capacity=capacity * _CREDIT),)
    # Only iptables-nft loads this (limit_mt_check), as a limit of nf_tables: add_nft_limit, nft_limit_init
    interval = average * (10**9 // _SCALE)
    return (Limit(interval=interval, capacity=interval * (burst or _DEFAULT_BURST)),)


LIMIT: Final = MatchExtension(
    name="limit",
    options=(OptionSpec(name="--limit"), OptionSpec(name="--limit-burst")),
    meaning=_limit,
)
"""``-m limit`` (``xt_limit``).

The capacity of a bucket is ``user2credits(average * burst)``, which differs from the burst in two cases: an
average that is not a whole number of seconds is rounded down (``7/minute`` with a burst of 5 lets 4 packets
pass), and the product wraps around at 32 bits (``1/hour`` with a burst of 39 lets 1 pass). A rule that
``limit_mt_check`` then refuses must come from iptables-nft, where the capacity is the burst.
"""
