"""``-m rt``: the tests of a routing header, and how nft spells them."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Family, Field, FieldTest
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

ALL = (0, 255)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", field_test(Field.ROUTING_TYPE, *ALL)),
        ("--rt-type 0", field_test(Field.ROUTING_TYPE, 0, 0)),
        ("! --rt-type 0x2", field_test(Field.ROUTING_TYPE, 2, 2, no=True)),
        ("--rt-type 256", field_test(Field.ROUTING_TYPE, *ALL, no=True)),
        ("! --rt-type 256", field_test(Field.ROUTING_TYPE, *ALL)),
        ("--rt-segsleft 1", field_test(Field.ROUTING_LEFT, 1, 1)),
        ("--rt-segsleft 1:", field_test(Field.ROUTING_LEFT, 1, 255)),
        ("! --rt-segsleft 1:3", field_test(Field.ROUTING_LEFT, 1, 3, no=True)),
        ("--rt-segsleft 3:1", field_test(Field.ROUTING_LEFT, *ALL, no=True)),
        ("--rt-segsleft 256:300", field_test(Field.ROUTING_LEFT, *ALL, no=True)),
        ("--rt-len 8", field_test(Field.ROUTING_LENGTH, 0, 0)),
        ("! --rt-len 24", field_test(Field.ROUTING_LENGTH, 2, 2, no=True)),
        ("--rt-len 2048", field_test(Field.ROUTING_LENGTH, 255, 255)),
        ("--rt-len 2056", field_test(Field.ROUTING_LENGTH, *ALL, no=True)),
        ("--rt-len 20", field_test(Field.ROUTING_LENGTH, *ALL, no=True)),
        ("! --rt-len 0", field_test(Field.ROUTING_LENGTH, *ALL)),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: FieldTest) -> None:
    assert read_rule(f"-m rt {options}".rstrip(), family=Family.IP6).tests == (expected,)


def test_the_reserved_bytes_of_type_0_are_zero(read_rule: ReadRule) -> None:
    assert read_rule("-m rt --rt-type 0 --rt-0-res", family=Family.IP6).tests == (
        field_test(Field.ROUTING_TYPE, 0),
        field_test(Field.ROUTING_LAST, 0),
        field_test(Field.ROUTING_FLAGS, 0),
        field_test(Field.ROUTING_TAG, 0),
    )


def test_a_header_of_type_0_has_these_addresses_and_no_more(read_rule: ReadRule) -> None:
    assert read_rule("-m rt --rt-type 0 --rt-0-addrs ::1,fd00::", family=Family.IP6).tests == (
        field_test(Field.ROUTING_TYPE, 0),
        field_test(Field.ROUTING_LENGTH, 4, 5),
        field_test(Field.ROUTING_FIRST_ADDRESS, 1),
        field_test(Field.ROUTING_SECOND_ADDRESS, 0xFD00 << 112),
    )


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--rt-0-addrs ::1,::2,::3", "--rt-0-addrs with more than 2 addresses, which nft does not read,"),
        ("--rt-0-addrs ::1 --rt-0-not-strict", "do not search a routing header for addresses"),
    ],
)
def test_other_addresses_of_type_0_are_kept_as_written(
    read_rule: ReadRule, options: str, reason: str
) -> None:
    rule = read_rule(f"-m rt --rt-type 0 {options}", family=Family.IP6)
    assert reason in rule.unknown[0].reason


@pytest.mark.parametrize(
    ("rule", "family", "message"),
    [
        ("-m rt --rt-type 1:2", Family.IP6, '"1:2" is not a number from 0 to 4294967295'),
        ("-m rt --rt-type 0", Family.IP, '"rt" does not belong to IPv4'),
        ("-m rt --rt-0-res", Family.IP6, "--rt-0-res needs --rt-type 0 before it"),
        ("-m rt --rt-0-res --rt-type 0", Family.IP6, "--rt-0-res needs --rt-type 0 before it"),
        ("-m rt ! --rt-type 0 --rt-0-res", Family.IP6, "--rt-0-res needs --rt-type 0 before it"),
        ("-m rt --rt-type 2 --rt-0-addrs ::1", Family.IP6, "--rt-0-addrs needs --rt-type 0 before it"),
        ("-m rt --rt-type 0 --rt-0-addrs ::1,x", Family.IP6, '"x" is not an IPv6 address'),
        (f"-m rt --rt-type 0 --rt-0-addrs {','.join(['::'] * 17)}", Family.IP6, "at most 16 addresses"),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, rule: str, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(rule, family=family)
    assert message in str(caught.value)


@pytest.mark.parametrize("level", [0, 2])
def test_nft_reads_the_header(level: int) -> None:
    text = (
        b"*filter\n:INPUT ACCEPT [0:0]\n"
        b"-A INPUT -m rt ! --rt-type 2 --rt-segsleft 1:3 ! --rt-len 24 -j DROP\nCOMMIT\n"
    )
    output = emit(lower(read_ruleset(text, name="rules", family=Family.IP6), level=level)).text
    assert "rt type != 2 rt seg-left 1-3 rt hdrlength != 2 drop" in output
