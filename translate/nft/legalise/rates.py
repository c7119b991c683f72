"""Token buckets as named limits of nftables, and quotas as named quotas.

A limit inside a rule would be one bucket per copy of the rule. A named limit is shared by all copies and all
hooks from which the rule's chain is called, as the bucket of ``xt_limit`` is.

nft has rates in whole packets per unit of time, and buckets of whole packets (``nft_limit_init``). The unit
is therefore the smallest in which a whole number of packets is within 0.01 % of the rate, or else the week.
"""

from __future__ import annotations

from typing import Final

from translate.ir import Limit, Origin, Quota
from translate.nft.legal import SharedLimit, SharedQuota
from translate.nft.names import NameGiver

__all__ = ["limit_of", "quota_of", "rate_of"]

_SECOND: Final = 10**9
_UNITS: Final = {
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": 86400 * _SECOND,
    "week": 604800 * _SECOND,
}
"""Nanoseconds in each of nft's units of time."""

_CLOSE: Final = 10_000

_MOST_BYTES: Final = (1 << 63) - 1
"""The greatest quota of ``nft_quota_do_init``, which no node ever exceeds."""


def limit_of(test: Limit, origin: Origin, names: NameGiver) -> SharedLimit:
    """Return the bucket for a test of the rule at ``origin``."""
    name = names.give(f"limit_{test.bucket.replace('/', '_', 1)}")
    rate, unit = rate_of(test.interval)
    note = f"-m limit, line {origin.line}" if origin.line else "-m limit"
    return SharedLimit(name=name, rate=rate, unit=unit, burst=test.burst, note=note)


def quota_of(test: Quota, origin: Origin, names: NameGiver) -> SharedQuota:
    """Return the quota for a test of the rule at ``origin``; as in x_tables, a packet may just fill it."""
    name = names.give(f"quota_{test.state.replace('/', '_', 1)}")
    note = f"-m quota, line {origin.line}" if origin.line else "-m quota"
    return SharedQuota(name=name, size=min(test.size, _MOST_BYTES), over=test.negated, note=note)


def rate_of(interval: int) -> tuple[int, str]:
    """Return the rate of one packet per ``interval`` nanoseconds, as packets and nft's name of a unit."""
    rates = [(max(1, round(size / interval)), unit, size) for unit, size in _UNITS.items()]
    close = (r for r in rates if abs(r[0] * interval - r[2]) * _CLOSE <= r[2])
    rate, unit, _ = next(close, rates[-1])
    return rate, unit
