from __future__ import annotations

import pytest

from harness.corpus.formats.ruletext import action_text
from tests.unit.translate.read.conftest import ReadRule
from translate.errors import ParseError
from translate.ir import Family, HashMark
from translate.read.listing.printed import parse_printed

ALL, WORD, PORT = (1 << 128) - 1, 0xFFFFFFFF, 0xFFFF


def made(read_rule: ReadRule, options: str, family: Family = Family.IP) -> HashMark:
    rule = read_rule(f"-j HMARK {options} --hmark-rnd 0x5 --hmark-mod 10", family=family, table="mangle")
    (action,) = rule.actions
    assert isinstance(action, HashMark)
    return action


@pytest.mark.parametrize(
    ("options", "masks", "ports"),
    [
        ("--hmark-tuple src", (WORD, 0, 0), (0, 0)),
        ("--hmark-tuple s,d,sp,dp,p", (WORD, WORD, PORT), (WORD, 0)),
        ("--hmark-tuple SRC,Spi", (WORD, 0, 0), (WORD, 0)),
        ("--hmark-src-prefix 24 --hmark-dst-prefix 255.255.0.0", (0xFFFFFF00, 0xFFFF0000, 0), (0, 0)),
        ("--hmark-src-prefix 24 --hmark-tuple src,sport", (WORD, 0, 0), (0xFFFF0000, 0)),
        ("--hmark-sport-mask 0xff --hmark-dport-mask 010", (0, 0, 0), (0x00FF0008, 0)),
        ("--hmark-sport 1 --hmark-dport 2 --hmark-spi-mask 7", (0, 0, 0), (7, 0x00010002)),
        ("--hmark-spi 0x12345678 --hmark-proto-mask 0xff", (0, 0, 0xFF), (0, 0x12345678)),
    ],
)
def test_what_is_hashed(
    read_rule: ReadRule, options: str, masks: tuple[int, int, int], ports: tuple[int, int]
) -> None:
    action = made(read_rule, options)
    assert (action.source_mask, action.destination_mask, action.protocol_mask) == masks
    assert (action.port_mask, action.port_set) == ports
    assert (action.seed, action.modulus, action.offset, action.by_connection) == (5, 10, 0, False)


def test_addresses_of_ipv6(read_rule: ReadRule) -> None:
    action = made(read_rule, "--hmark-tuple ct,dst --hmark-src-prefix 64 --hmark-offset 7", Family.IP6)
    assert (action.source_mask, action.destination_mask) == (ALL ^ ((1 << 64) - 1), ALL)
    assert (action.by_connection, action.offset) == (True, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--hmark-tuple src --hmark-mod 5", 'HMARK needs the option "--hmark-rnd"'),
        ("--hmark-tuple src --hmark-rnd 5", 'HMARK needs the option "--hmark-mod"'),
        ("--hmark-mod 5 --hmark-rnd 5", 'HMARK needs the option "--hmark-tuple"'),
        ("--hmark-tuple src --hmark-mod 0 --hmark-rnd 5", "the modulus is at least 1"),
        ("--hmark-tuple src,,dst --hmark-mod 1 --hmark-rnd 5", '"" is no part of a tuple'),
        ("--hmark-tuple source --hmark-mod 1 --hmark-rnd 5", '"source" is no part of a tuple'),
        ("--hmark-tuple src --hmark-src-prefix 8 --hmark-mod 1 --hmark-rnd 5", "of --hmark-tuple before it"),
        ("--hmark-tuple spi,sport --hmark-mod 1 --hmark-rnd 5", "does not go with those of ports"),
        ("--hmark-spi 1 --hmark-dport 1 --hmark-mod 1 --hmark-rnd 5", "does not go with those of ports"),
        ("--hmark-sport-mask 65536 --hmark-mod 1 --hmark-rnd 5", "not a number from 0 to 65535"),
    ],
)
def test_faults(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-j HMARK {options}", table="mangle")
    assert message in str(caught.value)


def test_words_of_a_listing() -> None:
    text = "HMARK mod 5 + 0x64 ct, src-prefix  dst-prefix 64 sport-mask 0xff dport 0x35 proto-mask 1 rnd 0x7"
    assert parse_printed(text, "HMARK", Family.IP6).options == [
        *("--hmark-mod", "5", "--hmark-offset", "0x64", "--hmark-tuple", "ct", "--hmark-src-prefix", "128"),
        *("--hmark-dst-prefix", "64", "--hmark-sport-mask", "0xff", "--hmark-dport", "0x35"),
        *("--hmark-proto-mask", "1", "--hmark-rnd", "0x7"),
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            "--hmark-tuple src,sport,proto --hmark-offset 100",
            "sets mark to one of 0x64 to 0x6d by a hash of source, ports and protocol",
        ),
        (
            "--hmark-tuple ct,dst",
            "sets mark to one of 0x0 to 0x9 by a hash of destination of its connection, if it has one",
        ),
        ("--hmark-sport 5", "sets mark to one of 0x0 to 0x9 by a hash of constants"),
    ],
)
def test_it_is_described(read_rule: ReadRule, options: str, sentence: str) -> None:
    assert action_text(made(read_rule, options), Family.IP) == sentence
