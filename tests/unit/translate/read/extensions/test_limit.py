"""``-m limit``: what is read as a token bucket, checked against what the kernel let pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import Limit, Rule

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]

SECOND = 10**9
HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("words", "interval", "burst"),
    [
        ("", 1200 * SECOND, 5),
        ("--limit 3/min --limit-burst 10", 20 * SECOND, 10),
        ("--limit 2", SECOND // 2, 5),
        ("--limit 2/S", SECOND // 2, 5),
        ("--limit 100/hour --limit-burst 0x10", 36 * SECOND, 16),
        ("--limit 1/d --limit-burst 1", 24 * HOUR, 1),
        # the rest is what iptables-legacy let pass of sixty packets, kernel 6.18
        ("--limit 7/min", 274284 * 31250, 4),
        ("--limit 7/hour", 514 * SECOND, 5),
        ("--limit 1/hour --limit-burst 37", HOUR, 37),
        ("--limit 1/hour --limit-burst 39", HOUR, 1),
        ("--limit 1/hour --limit-burst 10000", HOUR, 23),
        # it did not take these, which are iptables-nft's
        ("--limit 1/hour --limit-burst 38", HOUR, 38),
        ("--limit 1/day", 24 * HOUR, 5),
        ("--limit 1/sec --limit-burst 0", SECOND, 5),
    ],
)
def test_rates_and_bursts(read_rule: ReadRule, words: str, interval: int, burst: int) -> None:
    (test,) = read_rule(f"-m limit {words}").tests
    assert isinstance(test, Limit)
    assert (test.interval, test.burst) == (interval, burst)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--limit 0/s", '"0/s" is not a rate'),
        ("--limit x", '"x" is not a rate'),
        ("--limit 5/", '"5/" is not a rate'),
        ("--limit 5/seconds", '"5/seconds" is not a rate'),
        ("--limit 10001/s", "10001/s is faster than the 10000 packets a second of xt_limit"),
        ("--limit-burst 10001", "--limit-burst 10001 exceeds iptables' limit of 10000"),
        ("! --limit 5/s", '"--limit" cannot be negated'),
    ],
)
def test_what_iptables_refuses(read_fault: ReadFault, words: str, message: str) -> None:
    assert read_fault(f"-m limit {words}").message == message
