"""Guards against later fragments: where they stand, and rulesets that need none."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

WHOLE = "ip frag-off & 0x1fff == 0"
WHOLE_6 = "@th,0,24 >= 0"
LIMIT = "-m hashlimit --hashlimit-name h --hashlimit-mode dstport --hashlimit-upto 5/sec"


def text_of(*rules: str, family: Family = Family.IP, level: int = 0) -> str:
    lines = "\n".join(("*filter", *rules, "COMMIT\n")).encode()
    return emit(lower(read_ruleset(lines, name="rules", family=family), level=level)).text


@pytest.mark.parametrize(
    ("tests", "written"),
    [
        ("-p udp --dport 53", f"{WHOLE} udp dport 53"),
        ("-p icmp --icmp-type 8", f"{WHOLE} icmp type 8"),
        ("-s 10.0.0.1 -p tcp --syn", f"ip saddr 10.0.0.1 {WHOLE} tcp flags & 0x17 == 0x2"),
        ("-p udp --sport 1 --dport 2", f"{WHOLE} udp sport 1 udp dport 2"),
        ("-p udp ! -f --dport 53", f"{WHOLE} udp dport 53"),
        (
            "-p sctp --chunk-types any DATA",
            f"{WHOLE} sctp sport 0-65535 sctp sport >= 0 sctp chunk data exists",
        ),
        ("-p tcp ! --tcp-option 8", f"meta l4proto tcp {WHOLE} tcp sport >= 0 tcp option 8 missing"),
        ("-p udp", "meta l4proto udp"),
        ("-s 10.0.0.1", "ip saddr 10.0.0.1"),
    ],
)
def test_a_rule_that_reads_a_transport_header_excludes_later_fragments(tests: str, written: str) -> None:
    (rule,) = nft("filter", f"-A FORWARD {tests} -j DROP", fragments=True)["filter_FORWARD"]
    assert rule == f"{written} drop"


def test_the_offset_in_a_word_excludes_them_too() -> None:
    words = '-m u32 --u32 "4&0x1FFF=0&&0>>22&0x3C@0>>16=5"'
    (rule,) = nft("filter", f"-A FORWARD {words} -j DROP", fragments=True)["filter_FORWARD"]
    assert WHOLE not in rule
    (rule,) = nft("filter", '-A FORWARD -p udp --dport 9 -m u32 --u32 "0>>22&0x3C@0>>16=5"', fragments=True)[
        "filter_FORWARD"
    ]
    assert rule.count(WHOLE) == 1


def test_maps_of_ports_stand_behind_one_test_of_the_offset() -> None:
    rules = [f"-A FORWARD -p udp --dport {port} -j {'DROP' if port % 2 else 'ACCEPT'}" for port in range(9)]
    chain = nft("filter", *rules, level=2, fragments=True)["filter_FORWARD"]
    assert len(chain) == 1
    assert WHOLE in chain[0]
    assert " vmap " in chain[0]


@pytest.mark.parametrize(
    "tracks",
    [
        "-m conntrack --ctstate NEW",
        "-m connmark --mark 1",
        "-m connbytes --connbytes 5 --connbytes-dir both --connbytes-mode packets",
        "-m connlimit --connlimit-upto 5",
    ],
)
def test_no_guard_where_fragments_are_reassembled(tracks: str) -> None:
    assert WHOLE not in text_of("-A INPUT -p udp --dport 5", f"-A OUTPUT {tracks} -j DROP")
    assert WHOLE in text_of("-A INPUT -p udp --dport 5", "-A OUTPUT -j DROP")


def test_no_guard_beside_nat() -> None:
    text = b"*filter\n-A INPUT -p udp --dport 5\nCOMMIT\n*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"
    assert WHOLE not in emit(lower(read_ruleset(text, name="rules"), level=0)).text


def test_in_ipv6_a_load_that_fails_without_a_transport_header() -> None:
    text = text_of("-A INPUT -p udp --dport 5 -j DROP", "-A INPUT -p tcp -j DROP", family=Family.IP6)
    assert f"{WHOLE_6} udp dport 5 drop" in text
    assert text.count(WHOLE_6) == 1


def test_a_limit_by_ports_counts_later_fragments_of_ipv4_as_xt_hashlimit_does() -> None:
    assert WHOLE not in text_of(f"-A INPUT -p udp {LIMIT} -j DROP")
    assert WHOLE in text_of(f"-A INPUT -p udp {LIMIT} --sport 5 -j DROP")
    text_of(f"-A INPUT -p udp --dport 5 {LIMIT} -j DROP", family=Family.IP6)
    text_of(f"-A INPUT -p udp {LIMIT} -j DROP", "-A INPUT -m state --state NEW", family=Family.IP6)
    with pytest.raises(UnsupportedError, match="later fragments of IPv6 under port 0"):
        text_of(f"-A INPUT -p udp {LIMIT} -j DROP", family=Family.IP6)
