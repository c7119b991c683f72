"""``-j SYNPROXY``: the server's options in the reader, and the segments that nftables' statement may see."""

from __future__ import annotations

import pytest

import translate.bpf
from tests.unit.translate.helpers.rules import nft, program
from translate.errors import ParseError, UnsupportedError

FLAGS = "tcp flags & 0x17 == { 0x2, 0x10 }"


@pytest.mark.parametrize(
    ("options", "statement"),
    [
        ("", "synproxy"),
        ("--mss 1460", "synproxy mss 1460"),
        ("--wscale 7 --mss 1460", "synproxy mss 1460 wscale 7"),
        ("--sack-perm --timestamp --wscale 0", "synproxy wscale 0 timestamp sack-perm"),
    ],
)
def test_the_statement_sees_a_syn_or_an_ack_alone(options: str, statement: str) -> None:
    rules = nft("filter", f"-A INPUT -p tcp -j SYNPROXY {options}")
    assert rules["filter_INPUT"] == [f"meta l4proto tcp {FLAGS} {statement}"]


def test_what_follows_in_a_rule_does_not_depend_on_the_flags() -> None:
    rules = nft("filter", "-A INPUT -p tcp -m conntrack --ctstate NEW,DNAT -j SYNPROXY")
    assert rules["filter_INPUT_2_2"] == [f"{FLAGS} synproxy", "return"]


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-A INPUT -j SYNPROXY", 'SYNPROXY needs "-p tcp"'),
        ("-A INPUT ! -p tcp -j SYNPROXY", 'SYNPROXY needs "-p tcp"'),
        ("-A INPUT -p tcp -j SYNPROXY --wscale 15", "not a number from 0 to 14"),
        ("-A INPUT -p tcp -j SYNPROXY --mss 65536", "not a number from 0 to 65535"),
        ("-A OUTPUT -p tcp -j SYNPROXY", "not valid in OUTPUT"),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(rule: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program("filter", rule)


def test_ecn_and_the_tc_program_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="no option of synproxy for ECN"):
        nft("filter", "-A INPUT -p tcp -j SYNPROXY --ecn")
    with pytest.raises(UnsupportedError, match="does not answer in place of a server"):
        translate.bpf.emit(program("filter", "-A INPUT -p tcp -j SYNPROXY"))
