from __future__ import annotations

import pytest

from nfparity.migrate.planning.repeatable import insist_on_repeatable
from translate.errors import UnsupportedError
from translate.read import read_ruleset


def check(table: str, chain: str, rule: str) -> None:
    text = f"*{table}\n:{chain} ACCEPT [0:0]\n-A {chain} {rule}\nCOMMIT\n"
    insist_on_repeatable(read_ruleset(text.encode(), name="rules"))


@pytest.mark.parametrize(
    "rule",
    [
        "-j MARK --set-xmark 0x4000/0x4000",
        "-j MARK --set-xmark 0x1/0xffffffff",
        "-j MARK --and-mark 0xff",
        "-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff",
        "-j CONNMARK --restore-mark",
        "-m recent --name x --set -j ACCEPT",
    ],
)
def test_what_comes_to_the_same_twice(rule: str) -> None:
    check("mangle", "PREROUTING", rule)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("-j MARK --set-xmark 0x4000/0x0", "toggles bits 0x4000 of the mark"),
        ("-j MARK --xor-mark 0x1", "toggles bits 0x1 of the mark"),
        ("-j CONNMARK --set-xmark 0x3/0x1", "toggles bits 0x2 of the mark"),
        ("-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xf", "toggles bits 0xf0 of the connection's mark"),
        ("-j CONNMARK --restore-mark --nfmask 0xf --ctmask 0xff", "toggles bits 0xf0 of the mark"),
        ("-j CONNMARK --set-xmark 0x1/0xf --left-shift-mark 4", "shifts the connection's mark"),
        (
            "-j CONNMARK --save-mark --left-shift-mark 4 --mask 0xf",
            "toggles bits 0xf0 of the connection's mark",
        ),
        ("-m statistic --mode random --probability 0.5 -j DROP", "makes a random decision each time"),
        ("-m statistic --mode nth --every 2 --packet 0 -j DROP", "makes a random decision each time"),
    ],
)
def test_what_does_not_is_refused_with_its_line(rule: str, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        check("mangle", "PREROUTING", rule)
    (refusal,) = caught.value.refusals
    assert refusal.origin.line == 3
    assert refusal.reason.startswith(reason)


@pytest.mark.parametrize(
    "rule",
    ["-j MARK --set-xmark 0x4000/0x0", "-m statistic --mode random --probability 0.5 -j RETURN"],
)
def test_nat_is_left_to_the_packets(rule: str) -> None:
    """The first that binds is the last that is asked."""
    check("nat", "POSTROUTING", rule)
