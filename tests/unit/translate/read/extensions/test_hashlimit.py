"""``-m hashlimit``: what is read as token buckets, checked against what the kernel let pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.corpus.formats import ruletext
from translate.errors import Diagnostic
from translate.ir import Family, Field, HashLimit, Rule

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]

SECOND = 10**9
HOUR = 3600 * SECOND


def read(read_rule: ReadRule, words: str) -> HashLimit:
    (test,) = read_rule(f"-m hashlimit --hashlimit-name a {words}").tests
    assert isinstance(test, HashLimit)
    return test


@pytest.mark.parametrize(
    ("words", "interval", "burst"),
    [
        ("--hashlimit-upto 3/min", 20 * SECOND, 5),
        ("--hashlimit-upto 1000000/sec --hashlimit-burst 1", 1000, 1),
        # what iptables-legacy let pass of sixty packets, kernel 6.18
        ("--hashlimit-upto 7/min", 8571428000, 5),
        ("--hashlimit-upto 1/hour --hashlimit-burst 37", HOUR, 37),
        ("--hashlimit-upto 1/hour --hashlimit-burst 40", HOUR, 2),
    ],
)
def test_rates_and_bursts(read_rule: ReadRule, words: str, interval: int, burst: int) -> None:
    test = read(read_rule, words)
    assert (test.interval, test.burst, test.above) == (interval, burst, False)


def test_what_tells_buckets_apart(read_rule: ReadRule) -> None:
    test = read(
        read_rule,
        "! --hashlimit-upto 1/min --hashlimit-mode dstport,srcip --hashlimit-srcmask 24"
        " --hashlimit-htable-expire 5000 --hashlimit-htable-max 7",
    )
    assert test.key == (Field.SADDR, Field.DPORT)
    assert (test.source_mask, test.destination_mask) == (0xFFFFFF00, 0xFFFFFFFF)
    assert (test.expire, test.size, test.above) == (5000, 7, True)


def test_a_bucket_lasts_for_the_unit_of_its_rate(read_rule: ReadRule) -> None:
    assert read(read_rule, "--hashlimit-above 5/hour").expire == 3_600_000
    assert not read(read_rule, "! --hashlimit-above 5/hour").above


@pytest.mark.parametrize(
    ("words", "window", "rate", "burst"),
    [
        ("--hashlimit-upto 5/sec", 1, 5, 10),
        ("--hashlimit-upto 5/min --hashlimit-burst 1", 60, 5, 6),
        ("--hashlimit-upto 5/sec --hashlimit-rate-interval 60", 60, 5, 10),
        ("--hashlimit-above 7/hour --hashlimit-rate-interval 3x", 3, 7, 12),
        # 333,333 microseconds for a packet are a little more than three packets a second
        ("--hashlimit-above 3/sec --hashlimit-burst 1000000", 1, 3, 1_000_003),
    ],
)
def test_windows(read_rule: ReadRule, words: str, window: int, rate: int, burst: int) -> None:
    test = read(read_rule, f"{words} --hashlimit-rate-match")
    assert (test.window, test.rate, test.burst) == (window, rate, burst)
    assert not read(read_rule, words.replace("1000000", "5")).window, "without --hashlimit-rate-match"


def test_a_window_is_described(read_rule: ReadRule) -> None:
    test = read(read_rule, "--hashlimit-above 5/sec --hashlimit-rate-interval 60 --hashlimit-rate-match")
    sentence = "more than 5 packets in 60 s before, and 10 since then"
    assert ruletext.test_text(test, Family.IP) == sentence


@pytest.mark.parametrize(
    "words", ["--hashlimit-upto 512kb/s", "--hashlimit-upto 512kb/s --hashlimit-rate-match"]
)
def test_rates_of_bytes_are_kept_as_written(read_rule: ReadRule, words: str) -> None:
    rule = read_rule(f"-m hashlimit --hashlimit-name a {words} -j DROP")
    assert rule.tests == ()
    assert [unknown.extension for unknown in rule.unknown] == ["-m hashlimit"]
    assert rule.matches[0].options


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "hashlimit needs either --hashlimit-upto or --hashlimit-above"),
        ("--hashlimit-upto 0/s", '"0/s" is not a rate'),
        ("--hashlimit-upto 1/s --hashlimit-mode src", 'unknown mode "src"'),
        ("--hashlimit-upto 1/s --hashlimit-rate-interval 0", '"0" is not a number of seconds'),
        (
            "--hashlimit-upto 10000000/day --hashlimit-rate-match",
            "10000000/day is no rate of a window of xt_hashlimit",
        ),
        ("--hashlimit-upto 1/s --hashlimit-srcmask 33", '"33" is not a number from 0 to 32'),
        ("--hashlimit-upto 1/s --hashlimit-htable-expire 0", '"0" is not a number from 1 to 4294967295'),
        (
            "--hashlimit-upto 1/hour --hashlimit-burst 38",
            "38 packets at this rate are more than xt_hashlimit can count",
        ),
    ],
)
def test_what_iptables_refuses(read_fault: ReadFault, words: str, message: str) -> None:
    assert read_fault(f"-m hashlimit --hashlimit-name a {words}".strip()).message == message


def test_a_name_is_not_empty(read_fault: ReadFault) -> None:
    message = "the name of a table of hashlimit needs at least one character"
    assert read_fault('-m hashlimit --hashlimit-upto 1/s --hashlimit-name ""').message == message
