"""Iptables rules that may treat two equal flows differently."""

from __future__ import annotations

import pytest

from backends.iptables.variation import may_vary


@pytest.mark.parametrize(
    "rule",
    [
        "-A c -s 10.0.0.0/8 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:8080",
        '-A c -m comment --comment "a -m statistic -j TEE" -j other-chain',
        "-A c -m conntrack --ctstate INVALID -j DROP",
        "-A c -j MASQUERADE --random-fully",
        "-A c -m mark --mark 0x1/0x1 -g other-chain",
    ],
)
def test_rules_that_look_at_the_packet(rule: str) -> None:
    assert not may_vary(f"*nat\n:c - [0:0]\n:other-chain - [0:0]\n{rule}\nCOMMIT\n")


@pytest.mark.parametrize(
    "rule",
    [
        "-A c -m statistic --mode random --probability 0.5 -j ACCEPT",
        "-A c -m statistic --mode nth --every 2 --packet 0 -j ACCEPT",
        "-A c -m recent --name x --set -j ACCEPT",
        "-A c -m limit --limit 1/sec -j ACCEPT",
        "-A c -m time --timestart 08:00:00 -j ACCEPT",
        "-A c -m cpu --cpu 0 -j DROP",
        "-A c -j SET --add-set x src",
        "-A c -p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.9",
        "-A c -p tcp -j DNAT --to-destination 10.0.0.1:80 --random",
        "-A c -p tcp -j REDIRECT --to-ports 80-90",
        "-A c -j UNKNOWN",
    ],
)
def test_rules_that_depend_on_more(rule: str) -> None:
    assert may_vary(f"*nat\n:c - [0:0]\n{rule}\nCOMMIT\n")
