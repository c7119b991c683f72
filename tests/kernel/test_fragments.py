"""Matches and their translations beside each other on later fragments whose data begins like a header.

No rule uses conntrack, so nothing reassembles these fragments before the rules. In IPv6 the bytes that nft
would read are those of the IPv6 header itself (:mod:`translate.nft.legalise.fragments`).
"""

from __future__ import annotations

import os

import pytest

from tests.kernel.helpers.counted import counts_of_both
from tests.kernel.helpers.fragments import FLOW_LABEL, Fragment, drawn_tests, fragment, whole
from translate.ir import Family

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

IPV4 = (
    *("-p udp --sport 5", "-p udp ! --sport 7", "-p udp --dport 6:9", "-p udp -m multiport --dports 6,8"),
    *("-p udp -m multiport ! --ports 3", "-p tcp --syn", "-p tcp ! --tcp-flags RST RST", "-p udp -m udp"),
    *(
        "-p tcp --tcp-option 2",
        "-p tcp ! --tcp-option 3",
        "-p icmp --icmp-type 8",
        "-p icmp ! --icmp-type 8/1",
    ),
    *(
        "-p sctp --sport 5",
        "-p sctp -m sctp --chunk-types any DATA",
        "-p sctp -m sctp ! --chunk-types any INIT",
    ),
    *(
        "-p dccp -m dccp --dccp-types REQUEST",
        "-p dccp -m dccp --sport 5",
        "-p esp -m esp --espspi 5",
        "-p ah -m ah --ahspi 5",
    ),
    *("-p ipcomp -m ipcomp --ipcompspi 5", '-p udp -m u32 --u32 "4&0x1fff=0&&0>>22&0x3c@0>>16=5"'),
    "-p udp -m hashlimit --hashlimit-name h --hashlimit-mode dstport --hashlimit-above 1/hour"
    " --hashlimit-burst 1",  # reads ports of later fragments
    *("-p udp ! -f --dport 6", "-p tcp --dport 6 -m tcpmss --mss 1:9"),
)
IPV6 = (
    *(f"-p udp --dport {FLOW_LABEL}", "-p udp --sport 24576", "-p udp --sport 5", "-p udp ! --sport 7"),
    *("-p tcp --tcp-flags ALL NONE", "-p tcp ! --syn", f"-p tcp --dport {FLOW_LABEL}", "-p tcp --sport 5"),
    *(
        "-p icmpv6 --icmpv6-type 96",
        "-p icmpv6 --icmpv6-type 128",
        "-p sctp --sport 5",
        "-p sctp --sport 24576",
    ),
    *(
        "-p sctp -m sctp ! --chunk-types any INIT",
        "-p dccp -m dccp --dccp-types REQUEST",
        f"-p udp -m multiport --ports {FLOW_LABEL}",
    ),
    *("-p esp -m esp --espspi 5", f"-p esp -m esp --espspi {0x60000000 | FLOW_LABEL}"),
)
PROTOCOLS = {Family.IP: (17, 6, 1, 132, 33, 50, 51, 108), Family.IP6: (17, 6, 58, 132, 33, 50)}


def source(family: Family) -> str:
    """Return the match that only the test's own packets pass, not the answers of the stack."""
    return "-s 127.0.0.2" if family is Family.IP else "-s ::2"


def same_counts(tests: list[str], family: Family, level: int, *, jumps: bool) -> int:
    """Compare the counts of both after whole packets and fragments; return the sum of the counts."""
    matches = [f"{source(family)} {words}" for words in tests]
    packets = [whole(proto, family) for proto in PROTOCOLS[family]]
    packets += [fragment(proto, family, which) for proto in PROTOCOLS[family] for which in Fragment]
    states = counts_of_both(matches, packets, family, level=level, jumps=jumps)
    for packet, (legacy, ours) in zip(packets, states, strict=True):
        different = [words for words, a, b in zip(tests, legacy, ours, strict=True) if a != b]
        assert not different, packet.hex()
    return sum(states[-1][0])


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("family", Family)
def test_a_later_fragment_has_no_transport_header(family: Family, level: int) -> None:
    assert same_counts(list(IPV4 if family is Family.IP else IPV6), family, level, jumps=False)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("family", Family)
def test_drawn_rules_and_their_maps_read_none(family: Family, seed: int) -> None:
    tests = list(drawn_tests(seed, family, 24))
    assert same_counts(tests, family, seed % 3, jumps=True)
