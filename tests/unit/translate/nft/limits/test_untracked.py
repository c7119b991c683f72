"""NOTRACK is refused where nftables' notrack would show on what the node says about UNTRACKED packets."""

from __future__ import annotations

import pytest

from translate import nft
from translate.errors import UnsupportedError
from translate.ir import Ruleset
from translate.passes import lower
from translate.read import read_ruleset

RULES = """*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING {seen}-j CT --notrack
-A OUTPUT {made}-j CT --notrack
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A FORWARD -p tcp -j REJECT{reset}
{asks}
COMMIT
"""
INVALID = "-A OUTPUT -m conntrack --ctstate INVALID -j DROP"
UNTRACKED = "-A OUTPUT -m conntrack ! --ctstate NEW,UNTRACKED -j DROP"
LOOPBACK = "-A INPUT -i lo -m conntrack --ctstate INVALID -j DROP"


def refused(seen: str = "-i eth0 ", made: str = "", reset: str = "", asks: str = INVALID) -> list[int]:
    """Return the lines of NOTRACK that are refused at every level."""
    text = RULES.format(seen=seen, made=made, reset=reset, asks=asks)
    ruleset = read_ruleset(text.encode(), name="rules")
    found = [_refusals(ruleset, level) for level in (0, 1, 2)]
    assert found[0] == found[1] == found[2]
    assert {feature for feature, _ in found[0]} <= {"notrack-answers"}
    return [line for _, line in found[0]]


def _refusals(ruleset: Ruleset, level: int) -> list[tuple[str, int]]:
    try:
        nft.emit(lower(ruleset, level=level))
    except UnsupportedError as e:
        return [(r.feature, r.origin.line) for r in e.refusals]
    return []


@pytest.mark.parametrize("asks", [INVALID, UNTRACKED])
def test_icmp_errors_are_told_apart(asks: str) -> None:
    assert refused(asks=asks) == [5]
    assert refused(asks=asks, made="-p icmp ") == [5]
    assert refused(asks=asks, made="-p icmp --icmp-type 8 ") == []
    assert refused(asks=asks, made="-p udp ") == []


def test_a_rst_is_if_rules_send_one() -> None:
    reset = " --reject-with tcp-reset"
    assert refused(made="-p tcp ") == []
    assert refused(made="-p tcp ", reset=reset) == [5]
    assert refused(made="-p tcp ", reset=reset, asks=INVALID.replace("-m", "-p udp -m", 1)) == []


def test_nobody_asks() -> None:
    assert refused(asks="") == []
    assert refused(asks="-A OUTPUT -m conntrack --ctstate NEW,ESTABLISHED -j DROP") == []
    assert refused(asks="-A OUTPUT -m conntrack --ctstate INVALID,UNTRACKED -j DROP") == []
    assert refused(asks="-A FORWARD -m conntrack --ctstate INVALID -j DROP") == []


def test_what_the_node_says_to_itself_is_asked_in_input() -> None:
    assert refused(asks=LOOPBACK) == [5]
    assert refused(asks=LOOPBACK, made="-o eth0 ") == []
    assert refused(asks=LOOPBACK, made="-o eth0 ", seen="") == [4]
    assert refused(asks=LOOPBACK.replace("lo", "eth0")) == []
