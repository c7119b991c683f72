from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("6&0xFF=17", "@nh,48,32 & 0xff == 0x11"),
        ("8=5", "@nh,64,32 == 0x5"),
        ("8>>24=32:63,1", "@nh,64,32 & 0xff000000 == { 0x1000000, 0x20000000-0x3f000000 }"),
        ("0<<8>>24=0x48", "@nh,0,32 & 0xff0000 == 0x480000"),
        ("0&0xff<<4=0x10:0x2f", "@nh,0,32 & 0xff == 0x1-0x2"),
        ("20=0:0xffffffff", "@nh,160,32 >= 0x0"),
        ("255=1", "@nh,2040,32 == 0x1"),
        ("0&0xf0=0x10,0x11,0x20", "@nh,0,32 & 0xf0 == { 0x10-0x11, 0x20 }"),
        ("0&0xf0=0x11", "@nh,0,32 == 0x0"),
        ("0=5:3", "@nh,0,32 == 0x0"),
        ("0&0=0", "@nh,0,32 & 0x0 == 0x0"),
        ("4&0x1FFF=0&&0>>22&0x3C@0>>16=5", "@nh,32,32 & 0x1fff == 0x0 @th,0,32 & 0xffff0000 == 0x50000"),
    ],
)
def test_one_match_for_a_word(words: str, text: str) -> None:
    chains = nft("filter", f'-A FORWARD -m u32 --u32 "{words}" -j DROP')
    assert chains["filter_FORWARD"] == [f"{text} drop"]


@pytest.mark.parametrize("tests", ["-p udp -m udp --dport 53", "! -f", "-p icmp -m icmp --icmp-type 8"])
def test_another_test_excludes_later_fragments(tests: str) -> None:
    chains = nft("filter", f'-A FORWARD {tests} -m u32 --u32 "0>>24&0xF<<2@8=1" -j DROP')
    assert "@th,64,32 == 0x1 drop" in chains["filter_FORWARD"][0]


def test_a_negated_test_returns_where_the_words_are() -> None:
    chains = nft("filter", '-A FORWARD -m u32 ! --u32 "40=1" -j DROP', "-A FORWARD -j ACCEPT")
    assert chains["filter_FORWARD"] == ["jump filter_FORWARD_2", "accept"]
    assert chains["filter_FORWARD_2"] == ["@nh,320,32 == 0x1 return", "drop"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("0>>22&0x3C@0=1", "not read the data of every later fragment"),
        ("4&0x1FFE=0&&0>>22&0x3C@0=1", "not read the data of every later fragment"),
        ("4&0x1FFF=0:1&&0>>22&0x3C@0=1", "not read the data of every later fragment"),
        ("0>>22&0x38@0=1", "computes no offset"),
        ("4&0x1FFF=0&&0>>22&0x3C@12>>26&0x3C@0=1", "computes no offset"),
        ("256=1", "no bytes beyond byte 255"),
    ],
)
def test_what_nftables_cannot_read(words: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        nft("filter", f'-A FORWARD -m u32 --u32 "{words}" -j DROP')


def test_a_header_of_ipv6_has_no_length() -> None:
    text = b'*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -m u32 --u32 "0>>22&0x3C@0=1" -j DROP\nCOMMIT\n'
    with pytest.raises(UnsupportedError, match="computes no offset"):
        emit(lower(read_ruleset(text, name="rules", family=Family.IP6), level=0))
