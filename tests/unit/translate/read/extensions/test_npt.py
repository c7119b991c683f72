from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from translate.bpf import emit
from translate.errors import ParseError
from translate.ir import Family, TranslatePrefix, parse_address
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed


@pytest.mark.parametrize(("name", "chain"), [("SNPT", "POSTROUTING"), ("DNPT", "PREROUTING")])
def test_meaning(read_rule: ReadRule, name: str, chain: str) -> None:
    words = f"-j {name} --src-pfx fd00:1::/56 --dst-pfx 2001:db8::/48"
    rule = read_rule(words, family=Family.IP6, table="mangle")
    assert rule.actions == (
        TranslatePrefix(
            source=name == "SNPT",
            old=parse_address(Family.IP6, "fd00:1::"),
            old_bits=56,
            new=parse_address(Family.IP6, "2001:db8::"),
            bits=56,
        ),
    )


@pytest.mark.parametrize(
    ("options", "family", "table", "message"),
    [
        ("--src-pfx fd00::/64", Family.IP6, "mangle", 'SNPT needs the option "--dst-pfx"'),
        ("--src-pfx fd00:: --dst-pfx fd01::/64", Family.IP6, "mangle", "a prefix of 128 bits"),
        ("--src-pfx fd00::/65 --dst-pfx fd01::/64", Family.IP6, "mangle", "a prefix of 65 bits"),
        ("--src-pfx fd00::/129 --dst-pfx fd01::/64", Family.IP6, "mangle", "not a number from 0 to 128"),
        ("--src-pfx fd00::1/64 --dst-pfx fd01::/64", Family.IP6, "mangle", "bits after the prefix"),
        ("--src-pfx 10.0.0.0/8 --dst-pfx fd01::/64", Family.IP6, "mangle", "is not an IPv6 address"),
        ("--src-pfx fd00::/64 --dst-pfx fd01::/64", Family.IP6, "filter", "mangle"),
        ("--src-pfx fd00::/64 --dst-pfx fd01::/64", Family.IP, "mangle", "does not belong to IPv4"),
    ],
)
def test_faults(read_rule: ReadRule, options: str, family: Family, table: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-j SNPT {options}", family=family, table=table)
    assert message in str(caught.value)


@pytest.mark.parametrize("side", ["SNPT", "DNPT"])
def test_words_of_a_listing(side: str) -> None:
    text = f" {side} src-pfx fd00::/64 dst-pfx fd01::/64"
    assert parse_printed(text.strip(), side, Family.IP6).options == [
        *("--src-pfx", "fd00::/64", "--dst-pfx", "fd01::/64")
    ]


def test_the_tc_program() -> None:
    line = "-A POSTROUTING -j SNPT --src-pfx fd00:1::/48 --dst-pfx fd00:2::/56"
    text = "\n".join(("*mangle", line, "COMMIT", ""))
    output = emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=0))
    numbers = (
        *("0", "ADDRESS(0xfd00000100000000, 0x0)", "ADDRESS(0xffffffffffff0000, 0x0)"),
        *("ADDRESS(0xfd00000200000000, 0x0)", "ADDRESS(0xffffffffffffff00, 0x0)", "0xfffe", "0"),
    )
    assert f"translate_prefix(skb, p, {', '.join(numbers)})" in output.chains
    assert [note.feature for note in output.notes] == ["npt"]
