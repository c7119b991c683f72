from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.ir import Accept, Family, Interval, NatPorts, Snat
from translate.nft.printer.statements import statement


def written(table: str, chain: str, options: str) -> str:
    (rule,) = nft(table, f"-A {chain} {options}")[f"{table}_{chain}"]
    return rule


TO = "--to-destination"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (f"PREROUTING -p udp -j DNAT {TO} 10.0.0.3:53", "meta l4proto udp dnat to 10.0.0.3:53"),
        (f"PREROUTING -j DNAT {TO} 10.0.0.3-10.0.0.9 --persistent", "dnat to 10.0.0.3-10.0.0.9 persistent"),
        (f"PREROUTING -p tcp -j DNAT {TO} :80-90 --random", "meta l4proto tcp dnat to :80-90 random"),
        ("PREROUTING -p tcp -j REDIRECT --to-ports 9999", "meta l4proto tcp redirect to :9999"),
        ("PREROUTING -j REDIRECT", "redirect"),
        ("POSTROUTING -p udp -j SNAT --to-source 10.0.0.1:1-9", "meta l4proto udp snat to 10.0.0.1:1-9"),
        ("POSTROUTING -j MASQUERADE --random-fully", "masquerade fully-random"),
        ("POSTROUTING -p tcp -j MASQUERADE --to-ports 1-9", "meta l4proto tcp masquerade to :1-9"),
    ],
)
def test_nat(rule: str, text: str) -> None:
    chain, _, options = rule.partition(" ")
    assert written("nat", chain, options) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("-j REJECT", "reject with icmp type port-unreachable"),
        ("-j REJECT --reject-with icmp-proto-unreachable", "reject with icmp type prot-unreachable"),
        ("-j REJECT --reject-with icmp-admin-prohibited", "reject with icmp type admin-prohibited"),
        ("-p tcp -j REJECT --reject-with tcp-reset", "meta l4proto tcp reject with tcp reset"),
        ("-j RETURN", "return"),
        ("-j ACCEPT", "accept"),
        ("-j DROP", "drop"),
    ],
)
def test_verdicts(options: str, text: str) -> None:
    assert written("filter", "INPUT", options) == text


@pytest.mark.parametrize(
    ("xmark", "text"),
    [
        ("0x4000/0x4000", "meta mark | 0x4000"),
        ("0x4000/0x0", "meta mark ^ 0x4000"),
        ("0x16/0x12", "meta mark & 0xffffffed ^ 0x16"),
        ("0x0/0xff", "meta mark & 0xffffff00"),
        ("0x7/0xffffffff", "0x7"),
        ("0x0/0x0", "meta mark"),
    ],
)
def test_marks(xmark: str, text: str) -> None:
    assert written("mangle", "INPUT", f"-j MARK --set-xmark {xmark}") == f"meta mark set {text}"


def test_notrack() -> None:
    assert written("raw", "PREROUTING", "-j NOTRACK") == "notrack"


def test_addresses_of_ipv6_stand_in_brackets() -> None:
    snat = Snat(Interval.point(1), NatPorts(interval=Interval.point(53)))
    assert statement(snat, Family.IP6, {}) == "snat to [::1]:53"
    assert statement(Accept(), Family.IP6, {}) == "accept"
