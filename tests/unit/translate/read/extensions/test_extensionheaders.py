"""``-m hbh``, ``-m dst``, ``-m frag`` and ``-m ipv6header``: their tests, and how nft spells them."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import AnyOf, Family, Field, FieldTest, HeaderOptions, Interval, Test, WordTest
from translate.ir.words import read_words
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed

HOP, DESTINATION, ID, PROTO = Field.HOP_LENGTH, Field.DESTINATION_LENGTH, Field.FRAGMENT_ID, Field.L4PROTO
BYTE, WORD = (0, 255), (0, 0xFFFFFFFF)
PAYLOAD = FieldTest(field=PROTO, values=(Interval.point(50), Interval.point(59)), negated=True)


def listed(header: Field, *options: tuple[int, int | None]) -> HeaderOptions:
    return HeaderOptions(header=header, options=options)


def words(*texts: str) -> WordTest:
    """Return the test of words behind a header that is followed by hop-by-hop options."""
    return WordTest(words=read_words("&&".join(("4>>8&0xff=0", *texts))))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("hbh", [field_test(HOP, *BYTE)]),
        ("hbh --hbh-len 8", [field_test(HOP, 0, 0)]),
        ("hbh ! --hbh-len 0x10", [field_test(HOP, 1, 1, no=True)]),
        ("hbh --hbh-len 2048", [field_test(HOP, 255, 255)]),
        ("hbh --hbh-len 2056", [field_test(HOP, *BYTE, no=True)]),
        ("dst --dst-len 0", [field_test(DESTINATION, *BYTE, no=True)]),
        ("dst ! --dst-len 9", [field_test(DESTINATION, *BYTE)]),
        ("hbh --hbh-opts 5", [field_test(HOP, *BYTE), words("39&0xff=5")]),
        (
            "hbh ! --hbh-len 8 --hbh-opts 1:4,0,300:2",
            [
                field_test(HOP, 0, 0, no=True),
                field_test(HOP, 1, 255),
                words("40&0xffff=0x104", "45&0xff=0", "47&0xffff=0x2c02"),
            ],
        ),
        (
            "hbh --hbh-opts 1:3,0",
            [field_test(HOP, *BYTE), words("40&0xffff=0x103", "44&0xff=0")],
        ),
        (
            "hbh --hbh-opts 1:3,0,0",
            [
                field_test(HOP, *BYTE),
                field_test(HOP, 1, 255),
                words("40&0xffff=0x103", "44&0xff=0", "45&0xff=0"),
            ],
        ),
        ("hbh --hbh-opts 1:2,3,0", [field_test(HOP, *BYTE), listed(HOP, (1, 2), (3, None), (0, None))]),
        ("hbh --hbh-opts 1:255,0", [field_test(HOP, *BYTE), listed(HOP, (1, None), (0, None))]),
        ("dst --dst-opts 0", [field_test(DESTINATION, *BYTE), listed(DESTINATION, (0, None))]),
        (
            "dst ! --dst-len 8 --dst-opts 1:2,261:0",
            [field_test(DESTINATION, 0, 0, no=True), listed(DESTINATION, (1, 2), (5, 0))],
        ),
        ("frag", [field_test(ID, *WORD)]),
        ("frag --fragid 5", [field_test(ID, 5, 5)]),
        ("frag ! --fragid 5:7", [field_test(ID, 5, 7, no=True)]),
        ("frag --fragid 7:5", [field_test(ID, *WORD, no=True)]),
        ("frag --fraglen 9", [field_test(ID, *WORD)]),
        (
            "frag --fragres",
            [field_test(Field.FRAGMENT_RESERVED, 0, 0), field_test(Field.FRAGMENT_RESERVED2, 0, 0)],
        ),
        (
            "frag --fragfirst --fragmore",
            [field_test(Field.FRAGMENT_OFFSET, 0, 0), field_test(Field.FRAGMENT_MORE, 1, 1)],
        ),
        ("frag --fraglast", [field_test(Field.FRAGMENT_MORE, 0, 0)]),
        ("ipv6header --header hop --soft", [field_test(HOP, *BYTE)]),
        ("ipv6header --header 60,frag --soft", [field_test(DESTINATION, *BYTE), field_test(ID, *WORD)]),
        ("ipv6header --header esp,,none, --soft", [field_test(PROTO, 50, 50), field_test(PROTO, 59, 59)]),
        ("ipv6header --header prot --soft", [PAYLOAD]),
        (
            "ipv6header ! --header ipv6-route,protocol --soft",
            [AnyOf(tests=(field_test(Field.ROUTING_TYPE, *BYTE), PAYLOAD), negated=True)],
        ),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: list[Test]) -> None:
    assert read_rule(f"-m {options}", family=Family.IP6).tests == tuple(expected)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("ipv6header --header dst", "without --soft"),
        ("ipv6header --header dst,auth --soft", "--header ah"),
    ],
)
def test_what_is_kept_as_written(read_rule: ReadRule, options: str, reason: str) -> None:
    assert reason in read_rule(f"-m {options}", family=Family.IP6).unknown[0].reason


@pytest.mark.parametrize(
    ("options", "family", "message"),
    [
        ("hbh --hbh-len 8:16", Family.IP6, '"8:16" is not a number from 0 to 4294967295'),
        ("hbh --hbh-opts 0:1", Family.IP6, "option 0 (Pad1) has no length"),
        ("hbh --hbh-opts 1:x", Family.IP6, '"x" is not a number'),
        ("hbh --hbh-opts 1,", Family.IP6, '"" is not a number'),
        (f"hbh --hbh-opts {','.join('1' * 17)}", Family.IP6, "at most 16 options"),
        ("dst --dst-opts 0:1", Family.IP6, "option 0 (Pad1) has no length"),
        ("dst --dst-len 4294967296", Family.IP6, "is not a number from 0 to 4294967295"),
        ("frag --fragid 4294967296", Family.IP6, "is not a number from 0 to 4294967295"),
        ("frag --fraglen 1:2", Family.IP6, '"1:2" is not a number'),
        ("frag --fragmore --fraglast", Family.IP6, "a fragment is not the last one if more follow"),
        ("ipv6header --soft", Family.IP6, 'ipv6header needs the option "--header"'),
        ("ipv6header --header hop,proto --soft", Family.IP6, '"proto" is not an extension header of IPv6'),
        ("ipv6header --header , --soft", Family.IP6, "--header names no header"),
        ("hbh", Family.IP, '"hbh" does not belong to IPv4'),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, options: str, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m {options}", family=family)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hbh", "hbh"),
        (" hbh length:8", "hbh --hbh-len 8"),
        ("dst length:!9 opts 1:2,3,5:0", "dst ! --dst-len 9 --dst-opts 1:2,3,5:0"),
        ("frag ", "frag"),
        ("frag id:5", "frag --fragid 5"),
        (
            "frag ids:!5:7 length:8 reserved first more",
            "frag ! --fragid 5:7 --fraglen 8 --fragres --fragfirst --fragmore",
        ),
        ("frag  last", "frag --fraglast"),
        ("ipv6header flags:0xC0 soft", "ipv6header --header hop-by-hop,ipv6-opts --soft"),
        ("ipv6header flags:!0x03", "ipv6header ! --header ipv6-nonxt,protocol"),
    ],
)
def test_words_of_a_listing(text: str, words: str) -> None:
    assert parse_printed(text, None, Family.IP6).matches == ["-m", *words.split()]


@pytest.mark.parametrize("level", [0, 2])
def test_nft_reads_the_headers(level: int) -> None:
    text = (
        b"*filter\n:INPUT ACCEPT [0:0]\n"
        b"-A INPUT -m hbh ! --hbh-len 16 -m dst --dst-len 8 -j DROP\n"
        b"-A INPUT -m frag --fragid 5:7 --fragres --fragfirst --fragmore -j DROP\nCOMMIT\n"
    )
    output = emit(lower(read_ruleset(text, name="rules", family=Family.IP6), level=level)).text
    assert "hbh hdrlength != 1 dst hdrlength 0 drop" in output
    assert "frag id 5-7 frag reserved 0 frag reserved2 0 frag frag-off 0 frag more-fragments 1 drop" in output
