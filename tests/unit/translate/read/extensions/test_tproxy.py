"""``-j TPROXY``: its meaning, and the rules that nftables has for it."""

from __future__ import annotations

import re

import pytest

import translate.bpf
import translate.nft
from harness.corpus.formats.ruletext import action_text
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Proxy, Ruleset
from translate.passes import lower
from translate.read import read_ruleset

LOCALHOST = 0x7F000001


def ruleset(rule: str, family: Family = Family.IP, chain: str = "PREROUTING") -> Ruleset:
    text = f"*mangle\n:{chain} ACCEPT [0:0]\n-A {chain} {rule}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules", family=family)


def lines(rule: str, family: Family = Family.IP) -> list[str]:
    """Return the rules of the translation, without comments."""
    text = translate.nft.emit(lower(ruleset(rule, family), level=2)).text
    return [
        re.sub(' comment "[^"]*"$', "", line.strip())
        for line in text.splitlines()
        if re.search(r"tproxy|drop|jump|goto", line)
    ]


@pytest.mark.parametrize(
    ("options", "meaning"),
    [
        ("--on-port 80", Proxy(address=None, port=80)),
        ("--on-port http --on-ip 0.0.0.0", Proxy(address=None, port=80)),
        (
            "--on-port 0 --on-ip 127.0.0.1 --tproxy-mark 1/2",
            Proxy(address=LOCALHOST, port=0, value=1, mask=2),
        ),
        ("--tproxy-mark 1 --on-port 1", Proxy(address=None, port=1, value=1, mask=0xFFFFFFFF)),
    ],
)
def test_options(options: str, meaning: Proxy) -> None:
    assert ruleset(f"-p tcp -j TPROXY {options}").tables[0].chains[0].rules[0].actions == (meaning,)


def test_without_a_socket_nftables_goes_on_so_that_the_next_rule_drops() -> None:
    rule = "-p tcp -m tcp --dport 80 -j TPROXY --on-port 15001 --on-ip 127.0.0.1 --tproxy-mark 0x1/0xff"
    jump, proxied, dropped = lines(rule)
    assert proxied == (
        "meta l4proto tcp tproxy to 127.0.0.1:15001 meta mark set meta mark & 0xffffff00 ^ 0x1 accept"
    )
    assert dropped == "drop"
    assert jump.startswith("tcp dport 80 ")


def test_ipv6_and_no_port() -> None:
    _, proxied, _ = lines("-p udp -j TPROXY --on-port 0 --on-ip fd00::1", Family.IP6)
    assert proxied == "meta l4proto udp tproxy to [fd00::1] accept"


def test_port_0_is_that_of_the_packet() -> None:
    """``nft_tproxy_eval_v4`` takes the packet's port in place of 0, as ``tproxy_tg4`` does."""
    _, proxied, _ = lines("-p tcp -j TPROXY --on-port 0")
    assert proxied == "meta l4proto tcp tproxy to :0 accept"


def test_what_no_translation_says() -> None:
    with pytest.raises(UnsupportedError, match="before the stack looks for transparent sockets"):
        translate.bpf.emit(lower(ruleset("-p tcp -j TPROXY --on-port 1"), level=2))


def test_the_sentence_for_operators() -> None:
    here = action_text(Proxy(address=LOCALHOST, port=80), Family.IP)
    assert (
        here
        == "hands it to the transparent proxy at port 80 of 127.0.0.1, and drops it if none listens there"
    )
    assert "at its own port, and" in action_text(Proxy(address=None, port=0), Family.IP)


@pytest.mark.parametrize(
    ("rule", "chain", "message"),
    [
        ("-p tcp -j TPROXY", "PREROUTING", 'TPROXY needs the option "--on-port"'),
        ("-j TPROXY --on-port 1", "PREROUTING", 'TPROXY needs "-p tcp" or "-p udp"'),
        ("! -p tcp -j TPROXY --on-port 1", "PREROUTING", 'TPROXY needs "-p tcp" or "-p udp"'),
        ("-p tcp -j TPROXY --on-port 1:2", "PREROUTING", '"1:2" is not a port'),
        ("-p tcp -j TPROXY --on-port 1 --on-ip ::1", "PREROUTING", '"::1"'),
        ("-p tcp -j TPROXY --on-port 1", "INPUT", "not valid in INPUT"),
    ],
)
def test_what_iptables_does_not_take(rule: str, chain: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        ruleset(rule, chain=chain)
    assert message in str(caught.value)
