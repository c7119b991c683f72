from __future__ import annotations

import pytest

from backends.model.packet import Packet
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.words import words_hold
from translate.ir import Family, Protocol, WordTest, read_words

PACKET = Packet(
    family=Family.IP,
    src=0x0A000001,
    dst=0x0A000002,
    proto=Protocol.UDP,
    sport=5,
    dport=53,
    payload=b"\1\2\3\4",
)
LENGTH = 32


def holds(words: str, *, negated: bool = False, link: int = 1) -> bool:
    return words_hold(WordTest(words=read_words(words), negated=negated), Skb(PACKET, link=link))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("6&0xff=17", True),
        ("6&0xff=16,18:255", False),
        ("12=0x0a000001&&16=0x0a000002", True),
        ("12=0x0a000001&&16=0x0a000003", False),
        ("0>>22&0x3c@0>>16=5", True),
        ("0>>22&0x3c@0<<16=0x350000", True),
        (f"{LENGTH - 4}=0x01020304", True),
        (f"{LENGTH - 3}=0:0xffffffff", False),
        ("0xffffffff=0:0xffffffff", False),
        ("0&0xffff@0xfffffffc=0:0xffffffff", False),  # the offset does not wrap around
        ("28>>24@27=0x01020304", True),  # the byte at 28 is 1
        ("28>>24@28=0:0xffffffff", False),
        ("28>>24@27>>24@26>>24=1", True),  # offsets add up
        ("28@0=0:0xffffffff", False),
        ("28=5:3", False),
    ],
)
def test_the_words_of_a_packet(words: str, expected: bool) -> None:
    assert holds(words) is expected
    assert holds(words, negated=True) is not expected


def test_unknown_bytes_decide_nothing_where_they_are_masked() -> None:
    assert holds("4&0xffff=0", link=0)
    assert not holds("4&0xffff=1", link=0)
    assert not holds("4=0&&6&0xff=1", link=0)
    assert holds("4=0:0xffffffff", link=0)
    assert holds("4>>16=0x10000:0x20000", negated=True, link=0)
    for words in ("4=0", "4>>16@0=0", "8&1=0"):
        with pytest.raises(Undecided, match="bytes that the kernel chooses"):
            holds(words, link=0)
