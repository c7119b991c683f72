"""``-m srh``: the tests of a segment routing header, and how nft spells them."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Family, Field, FieldTest
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

HEADER = (field_test(Field.ROUTING_TYPE, 4), field_test(Field.ROUTING_IN_ORDER, 1))
NETWORK = 0xFD00 << 112
ALL = (0, 255)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", ()),
        ("--srh-next-hdr 17", (field_test(Field.ROUTING_NEXT, 17),)),
        ("! --srh-next-hdr 0x11", (field_test(Field.ROUTING_NEXT, 17, no=True),)),
        ("--srh-hdr-len-eq 4", (field_test(Field.ROUTING_LENGTH, 4),)),
        ("--srh-hdr-len-gt 4", (field_test(Field.ROUTING_LENGTH, 5, 255),)),
        ("! --srh-hdr-len-lt 4", (field_test(Field.ROUTING_LENGTH, 0, 3, no=True),)),
        ("--srh-hdr-len-gt 255", (field_test(Field.ROUTING_LENGTH, *ALL, no=True),)),
        ("--srh-segs-left-lt 0", (field_test(Field.ROUTING_LEFT, *ALL, no=True),)),
        ("! --srh-last-entry-lt 0", (field_test(Field.ROUTING_LAST, *ALL),)),
        # the last number counts for all three options
        (
            "--srh-last-entry-gt 9 --srh-last-entry-lt 3",
            (field_test(Field.ROUTING_LAST, 4, 255), field_test(Field.ROUTING_LAST, 0, 2)),
        ),
        ("--srh-tag 1", (field_test(Field.ROUTING_TAG, 0x100),)),
        ("! --srh-tag 0x1234", (field_test(Field.ROUTING_TAG, 0x3412, no=True),)),
        (
            "--srh-lsid fd00::/64",
            (field_test(Field.ROUTING_FIRST_ADDRESS, NETWORK, NETWORK | (1 << 64) - 1),),
        ),
        ("! --srh-lsid fd00::1", (field_test(Field.ROUTING_FIRST_ADDRESS, NETWORK | 1, no=True),)),
        (
            "--srh-segs-left-eq 2 --srh-nsid fd00::",
            (field_test(Field.ROUTING_LEFT, 2), field_test(Field.ROUTING_SECOND_ADDRESS, NETWORK)),
        ),
        (
            "--srh-segs-left-eq 0 ! --srh-psid fd00::",
            (
                field_test(Field.ROUTING_LEFT, 0),
                field_test(Field.ROUTING_LAST, 0, no=True),
                field_test(Field.ROUTING_SECOND_ADDRESS, NETWORK, no=True),
            ),
        ),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: tuple[FieldTest, ...]) -> None:
    assert read_rule(f"-m srh {options}".rstrip(), family=Family.IP6).tests == (*HEADER, *expected)


@pytest.mark.parametrize(
    "options",
    [
        "--srh-psid fd00::1",
        "--srh-nsid fd00::1",
        "--srh-segs-left-eq 3 --srh-nsid fd00::1",
        "--srh-segs-left-eq 0 --srh-nsid fd00::1",
        "--srh-segs-left-eq 1 --srh-psid fd00::1",
        "! --srh-segs-left-eq 1 --srh-nsid fd00::1",
        "--srh-segs-left-gt 1 --srh-nsid fd00::1",
    ],
)
def test_a_segment_that_nft_does_not_find_is_kept_as_written(read_rule: ReadRule, options: str) -> None:
    rule = read_rule(f"-m srh {options}", family=Family.IP6)
    assert "by which nft finds it" in rule.unknown[0].reason


@pytest.mark.parametrize(
    ("rule", "family", "message"),
    [
        ("-m srh --srh-next-hdr tcp", Family.IP6, '"tcp" is not a number from 0 to 255'),
        ("-m srh --srh-tag 65536", Family.IP6, '"65536" is not a number from 0 to 65535'),
        ("-m srh --srh-lsid 10.0.0.1", Family.IP6, '"10.0.0.1" is not an IPv6 address'),
        ("-m srh", Family.IP, '"srh" does not belong to IPv4'),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, rule: str, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(rule, family=family)
    assert message in str(caught.value)


def test_nft_compares_the_two_bytes_by_a_set() -> None:
    text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m srh --srh-tag 1 --srh-lsid fd00::/64 -j DROP\nCOMMIT\n"
    output = emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=0)).text
    assert "rt type 4 rt seg-left . srh last-entry { 0 . 0-255, 1 . 1-255, " in output
    assert "255 . 255-255 } srh tag 256 rt0 addr[1] fd00::-fd00::ffff:ffff:ffff:ffff drop" in output
