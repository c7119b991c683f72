from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import UnsupportedError
from translate.ir import PORT_PROTOCOLS, AnyOf, Family, Field, FieldTest, Interval, Name, Test
from translate.nft.legal import Part
from translate.nft.legalise.headers import matches, protocol_among
from translate.nft.legalise.ipsets import NamedSets
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver
from translate.nft.printer.matches import field_match

NO_SETS = NamedSets({}, Family.IP, NameGiver())


def legal(*tests: Test) -> list[Part]:
    """The matches of one rule with these tests."""
    return matches(tests, Family.IP, NO_SETS.match)


def match(options: str) -> str:
    """Return the matches of one rule as text."""
    (rule,) = nft("filter", f"-A FORWARD {options} -j DROP")["filter_FORWARD"]
    return rule.removesuffix(" drop")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("-s 10.0.0.1/32 ! -d 10.244.0.0/16", "ip saddr 10.0.0.1 ip daddr != 10.244.0.0/16"),
        ("-s 10.0.0.7/255.0.255.255", "ip saddr & 255.0.255.255 == 10.0.0.7"),
        ("-i eth0 ! -o pod+", 'iifname "eth0" oifname != "pod*"'),
        ("-i eth01234567890+", 'iifname "eth01234567890*"'),
        ("-f", "ip frag-off & 0x1fff != 0"),
        ("! -f", "ip frag-off & 0x1fff == 0"),
        ("-p tcp -m tcp --dport 53", "tcp dport 53"),
        ("-p udp -m udp ! --sport 1:99", "udp sport != 1-99"),
        ("-p sctp -m sctp --dport 4001", "sctp dport 4001"),
        ("! -p tcp", "meta l4proto != tcp"),
        ("-p 99", "meta l4proto 99"),
        ("-p tcp -m multiport --dports 80,443,8000:8080", "tcp dport { 80, 443, 8000-8080 }"),
        ("-p icmp -m icmp --icmp-type 3/4", "icmp type 3 icmp code 4"),
        ("-m length ! --length 60:1500", "meta length != 60-1500"),
        ("-m ttl --ttl-lt 5", "ip ttl 0-4"),
        ("-m dscp ! --dscp 0x2e", "ip dscp != 0x2e"),
        ("-m tos --tos 0x02/0x03", "ip ecn 0x2"),
        ("-m tos --tos 0x10/0x3f", "@nh,8,8 & 0x3f == 0x10"),
        ("-m tos ! --tos 0x10", "@nh,8,8 != 0x10"),
        ("-m mac ! --mac-source 02:00:00:00:02:01", "ether saddr != 02:00:00:00:02:01"),
        ("-m pkttype --pkt-type unicast", "meta pkttype host"),
        ("-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN", "tcp flags & 0x17 == 0x2"),
        ("-m mark --mark 0x4000/0x4000", "meta mark & 0x4000 == 0x4000"),
        ("-m mark ! --mark 0x1", "meta mark != 0x1"),
        ("-m conntrack --ctstate RELATED,ESTABLISHED", "ct state established,related"),
        # A negated list is no bit test in nft: the other states are.
        ("-m conntrack ! --ctstate NEW,INVALID", "ct state established,related,untracked"),
        ("-m addrtype --src-type LOCAL ! --dst-type LOCAL", "fib saddr type local fib daddr type != local"),
        ("-m addrtype --dst-type LOCAL --limit-iface-in", "fib daddr . iif type local"),
        ("-p tcp -m conntrack --ctorigdstport 80", "meta l4proto tcp ct original proto-dst 80"),
        ("-m conntrack --ctproto 17", "ct original protocol & 0xff == udp"),
        ("-m conntrack ! --ctproto 99", "ct original protocol & 0xff != 99"),
        ("-m conntrack --ctorigdst 10.96.0.10/32", "ct original ip daddr 10.96.0.10"),
        (
            "-m statistic --mode random --probability 0.25000000000",
            "numgen random mod 2147483648 < 536870912",
        ),
        ("-m statistic --mode nth --every 3 --packet 1", "numgen inc mod 3 == 1"),
    ],
)
def test_matches_as_nft_spells_them(options: str, text: str) -> None:
    assert match(options) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        # nft 1.0.6 would join them into "not both".
        ("-p tcp -m tcp ! --sport 443 ! --dport 443", "tcp sport != 443 tcp dport & 0xffff != 443"),
        ("-p sctp -m multiport ! --ports 443", "sctp sport != 443 sctp dport & 0xffff != 443"),
        ("-p tcp -m tcp ! --dport 1 -m multiport ! --sports 2", "tcp dport != 1 tcp sport & 0xffff != 2"),
        # These it joins into "both", or leaves alone.
        ("-p tcp -m tcp --sport 443 --dport 443", "tcp sport 443 tcp dport 443"),
        ("-p tcp -m tcp ! --sport 443 --dport 443", "tcp sport != 443 tcp dport 443"),
        ("-p tcp -m tcp ! --sport 1:443 ! --dport 443", "tcp sport != 1-443 tcp dport != 443"),
        # It would join these across the counter, which then sees other packets.
        (
            "-p tcp -m tcp --sport 1 -m statistic --mode nth --every 3 --packet 0 -m multiport --dports 2",
            "tcp sport 1 numgen inc mod 3 == 0 tcp dport & 0xffff == 2",
        ),
        # The counter counts TCP alone.
        (
            "-p tcp -m statistic --mode nth --every 3 --packet 0 -m tcp --dport 2",
            "meta l4proto tcp numgen inc mod 3 == 0 tcp dport 2",
        ),
    ],
)
def test_matches_that_nft_would_join(options: str, text: str) -> None:
    assert match(options) == text


def test_a_port_asks_for_a_protocol_that_has_ports() -> None:
    port = FieldTest(field=Field.DPORT, values=(Interval.point(53),))
    assert legal(port) == [protocol_among(PORT_PROTOCOLS), port]
    icmp_too = FieldTest(field=Field.L4PROTO, values=(Interval.point(1), Interval.point(6)))
    assert legal(icmp_too, port) == [icmp_too, protocol_among([6]), port]
    guard = field_match(protocol_among(PORT_PROTOCOLS), Family.IP)
    assert guard == "meta l4proto { tcp, udp, dccp, sctp, udplite }"
    assert field_match(port, Family.IP) == "th dport 53"


def test_a_wildcard_that_fills_the_kernels_buffer_is_no_wildcard() -> None:
    name = FieldTest(field=Field.IIF, values=(Name("a" * 15, wildcard=True),))
    assert legal(name) == [FieldTest(field=Field.IIF, values=(Name("a" * 15),))]


def test_an_interface_name_that_nft_cannot_spell_is_refused() -> None:
    with pytest.raises(CannotSay, match="interface name"):
        legal(FieldTest(field=Field.IIF, values=(Name('e"th'),)))


def test_any_of_is_no_match() -> None:
    with pytest.raises(AssertionError):
        legal(AnyOf(tests=()))


def test_what_nftables_cannot_say_is_refused_rule_by_rule() -> None:
    with pytest.raises(UnsupportedError) as caught:
        nft(
            "filter",
            "-A INPUT -m recent --name a --rcheck --rttl --rsource -j DROP",
            "-A INPUT -j ACCEPT",
            "-A FORWARD -m set --match-set b src,src -j DROP",
            ipsets="create b hash:ip,port\nadd b 10.0.0.1,icmp:ping\n",
        )
    assert [(r.feature, r.origin.text.split()[1]) for r in caught.value.refusals] == [
        ("recent-rttl", "INPUT"),
        ("ipset-protocol", "FORWARD"),
    ]
    assert {r.backend for r in caught.value.refusals} == {"nftables"}


def test_ports_of_a_connection_of_any_protocol() -> None:
    every = "meta l4proto { 0-5, 7-255, tcp }"
    assert nft("filter", "-A INPUT -m conntrack --ctorigdstport 80 -j DROP")["filter_INPUT"] == [
        f"{every} ct original proto-dst 80 drop"
    ]
    counter = "-m statistic --mode nth --every 2 --packet 0"
    port = "-m conntrack --ctorigdstport 80"
    # Behind that match nft would take it that TCP has been asked for, and refuse ICMP.
    assert nft("filter", f"-A INPUT -p tcp {port} {counter} -m tcp --tcp-flags SYN SYN -j DROP")[
        "filter_INPUT"
    ] == [
        f"{every} meta l4proto tcp ct original proto-dst 80 numgen inc mod 2 == 0"
        " meta l4proto tcp tcp flags & 0x2 == 0x2 drop"
    ]
    assert nft("filter", f"-A INPUT -p icmp {port} {counter} -m icmp --icmp-type 3 -j DROP")[
        "filter_INPUT"
    ] == [
        f"{every} meta l4proto icmp ct original proto-dst 80 numgen inc mod 2 == 0"
        " meta l4proto icmp @th,0,8 3 drop"
    ]


@pytest.mark.parametrize(
    ("test", "text"),
    [
        (FieldTest(field=Field.TTL, values=(Interval(0, 4),)), "ip6 hoplimit 0-4"),
        (FieldTest(field=Field.TOS, values=(Interval.point(0xB8),), mask=0xFC), "ip6 dscp 0x2e"),
        (FieldTest(field=Field.TOS, values=(Interval.point(0x10),), mask=0x3F), "@nh,0,16 & 0x3f0 == 0x100"),
        (
            FieldTest(field=Field.TOS, values=(Interval.point(0x10),), negated=True),
            "@nh,0,16 & 0xff0 != 0x100",
        ),
    ],
)
def test_the_traffic_class_lies_across_two_bytes(test: FieldTest, text: str) -> None:
    assert field_match(test, Family.IP6) == text
