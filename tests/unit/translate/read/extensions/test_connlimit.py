"""``-m connlimit``: the limit, the address and the mask, as iptables-save prints them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic
from translate.ir import ConnectionLimit, Rule, SetDirection

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


def read(read_rule: ReadRule, words: str) -> ConnectionLimit:
    (test,) = read_rule(f"-m connlimit {words}").tests
    assert isinstance(test, ConnectionLimit)
    return test


@pytest.mark.parametrize(
    ("words", "above", "limit"),
    [
        ("--connlimit-above 3", True, 3),
        ("! --connlimit-above 3", False, 3),
        ("--connlimit-upto 0x10", False, 16),
        ("! --connlimit-upto 4294967295", True, 4294967295),
    ],
)
def test_limits(read_rule: ReadRule, words: str, above: bool, limit: int) -> None:
    test = read(read_rule, words)
    assert (test.above, test.limit, test.side, test.mask) == (above, limit, SetDirection.SRC, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("words", "side", "mask"),
    [
        ("--connlimit-mask 24 --connlimit-saddr", SetDirection.SRC, 0xFFFFFF00),
        ("--connlimit-mask 255.255.0.0 --connlimit-daddr", SetDirection.DST, 0xFFFF0000),
        ("--connlimit-mask 0", SetDirection.SRC, 0),
    ],
)
def test_addresses(read_rule: ReadRule, words: str, side: SetDirection, mask: int) -> None:
    test = read(read_rule, f"--connlimit-above 1 {words}")
    assert (test.side, test.mask) == (side, mask)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--connlimit-mask 24", "connlimit needs either --connlimit-upto or --connlimit-above"),
        (
            "--connlimit-upto 1 --connlimit-above 2",
            "connlimit needs either --connlimit-upto or --connlimit-above",
        ),
        (
            "--connlimit-upto 1 --connlimit-saddr --connlimit-daddr",
            "connlimit takes one of --connlimit-saddr and --connlimit-daddr",
        ),
        ("--connlimit-upto 1 --connlimit-mask 33", '"33" is not a number from 0 to 32'),
        ("--connlimit-upto 1 --connlimit-mask 255.0.255.0", '"255.0.255.0" is not a prefix length or mask'),
    ],
)
def test_faults(read_fault: ReadFault, words: str, message: str) -> None:
    assert read_fault(f"-m connlimit {words}").message == message
