"""Tests with a state in words: token buckets, lists of addresses, and changes of ipsets."""

from __future__ import annotations

from typing import Final

from translate.ir import HashLimit, Limit, Recent, RecentMode, SetDirection, SetUpdate

__all__ = ["limit_text", "recent_text", "update_text"]


def limit_text(test: Limit | HashLimit) -> str:
    """Return a description of a token bucket, such as ``at most 3 packets a minute after a burst of 10``."""
    if isinstance(test, HashLimit) and test.window:
        count, most = f"{test.rate} packets in {test.window} s", f"{test.burst} since then"
        return f"{'more than' if test.above else 'at most'} {count} before, and {most}"
    rates = ((seconds * 10**9 / test.interval, unit) for unit, seconds in _UNITS.items())
    rate, unit = next((rate for rate in rates if rate[0] >= 0.999), (86400e9 / test.interval, "day"))
    packets = f"{rate:.4g} packet{'' if f'{rate:.4g}' == '1' else 's'}"
    most = "more than" if isinstance(test, HashLimit) and test.above else "at most"
    return f"{most} {packets} {'an' if unit == 'hour' else 'a'} {unit} after a burst of {test.burst}"


def recent_text(test: Recent) -> str:
    """Return a description of ``-m recent``: a test of a list of addresses, and its change of the list."""
    side = "source" if test.side is SetDirection.SRC else "destination"
    if test.mode is RecentMode.SET:
        text = f"its {side} is put into list {test.name}"
        return f"not: {text}" if test.negated else text
    times = f" at least {test.hitcount} times" if test.hitcount and test.hitcount > 1 else ""
    times += f" in the last {test.seconds} seconds" if test.seconds else ""
    times += " with the same TTL" if test.rttl else ""
    text = f"its {side} is {'not ' if test.negated else ''}in list {test.name}{times}"
    if test.mode is RecentMode.RCHECK:
        return text
    change = "puts it in again" if test.mode is RecentMode.UPDATE else "removes it"
    return f"{text} ({'otherwise ' if test.negated else ''}the rule {change})"


def update_text(test: SetUpdate) -> str:
    """Return a description of ``-j SET``."""
    sides = ",".join(test.directions)
    return f"{'deletes' if test.delete else 'adds'} {sides} {'from' if test.delete else 'to'} set {test.name}"


_UNITS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}
