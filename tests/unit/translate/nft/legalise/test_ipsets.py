"""ipsets as named sets: their keys, nets without overlaps, and what a negated test takes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.translate.helpers.rules import nft
from translate.ir import Family, Interval, IpSet, SetElement, SetType
from translate.nft.legalise.ipsets import intervals_of

PORTS = "create p hash:ip,port\nadd p 10.0.0.1,tcp:80\nadd p 10.0.0.1,udp:53\n"
BITMAP = "create b bitmap:port range 0-65535\nadd b 80-82\nadd b 90\n"
NETS = "create n hash:net\nadd n 10.0.0.0/8\nadd n 10.1.0.0/16 nomatch\nadd n 10.1.2.0/24\n"


def elements(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(("typeof ", "flags "))]


def test_rules_share_one_set_and_ask_it_in_their_own_direction() -> None:
    found = nft(
        "filter",
        "-A FORWARD -m set --match-set p dst,dst -j DROP",
        "-A FORWARD -m set --match-set p src,src -j ACCEPT",
        ipsets=PORTS,
    )
    assert elements(found["set_p"]) == ["10.0.0.1 . tcp . 80", "10.0.0.1 . udp . 53"]
    assert found["filter_FORWARD"] == [
        "ip daddr . meta l4proto . th dport @set_p drop",
        "ip saddr . meta l4proto . th sport @set_p accept",
    ]


def test_a_bitmap_holds_the_ports_of_tcp_and_udp() -> None:
    found = nft("filter", "-A FORWARD -m set --match-set b dst -j DROP", ipsets=BITMAP)
    assert elements(found["set_b"]) == ["tcp . 80-82", "udp . 80-82", "tcp . 90", "udp . 90"]
    assert found["filter_FORWARD"] == ["meta l4proto . th dport @set_b drop"]


def test_an_empty_set_is_a_set() -> None:
    found = nft("filter", "-A FORWARD -m set --match-set e src -j DROP", ipsets="create e hash:ip\n")
    assert elements(found["set_e"]) == []
    assert found["filter_FORWARD"] == ["ip saddr @set_e drop"]


def test_nets_are_what_the_longest_prefix_says() -> None:
    found = nft("filter", "-A FORWARD -m set ! --match-set n src -j DROP", ipsets=NETS)
    assert elements(found["set_n"]) == ["10.0.0.0/16", "10.1.2.0/24", "10.2.0.0-10.255.255.255"]
    assert found["filter_FORWARD"] == ["ip saddr != @set_n drop"]


def test_every_address_is_written_as_two_halves() -> None:
    whole = "create n hash:net\nadd n 0.0.0.0/1\nadd n 128.0.0.0/1\n"
    found = nft("filter", "-A FORWARD -m set --match-set n src -j DROP", ipsets=whole)
    assert elements(found["set_n"]) == ["0.0.0.0/1", "128.0.0.0/1"]


def test_not_in_a_set_with_ports_holds_where_no_key_can_be_made() -> None:
    found = nft("filter", "-A FORWARD -m set ! --match-set p dst,dst -j DROP", ipsets=PORTS)
    assert found["filter_FORWARD"] == ["jump filter_FORWARD_2"]
    assert found["filter_FORWARD_2"] == ["ip daddr . meta l4proto . th dport @set_p return", "drop"]


def test_what_stands_behind_a_rule_that_leaves_moves_to_a_chain_of_its_own() -> None:
    found = nft(
        "filter",
        "-A FORWARD -i eth0 -m set ! --match-set p dst,dst -j RETURN",
        "-A FORWARD -j DROP",
        ipsets=PORTS,
    )
    assert found["filter_FORWARD"] == ['iifname "eth0" goto filter_FORWARD_3', "goto filter_FORWARD_2"]
    assert found["filter_FORWARD_2"] == ["drop"]
    assert found["filter_FORWARD_3"] == [
        "ip daddr . meta l4proto . th dport @set_p goto filter_FORWARD_2",
        "return",
    ]


PREFIXES = st.dictionaries(
    st.tuples(st.integers(0, 31), st.integers(27, 32)).map(lambda p: Interval.prefix(p[0], p[1], 32)),
    st.booleans(),
    max_size=12,
)


@given(PREFIXES)
def test_the_intervals_hold_what_the_kernel_finds(prefixes: dict[Interval, bool]) -> None:
    members = tuple(SetElement(key=(net,), nomatch=drop) for net, drop in prefixes.items())
    known = IpSet(name="n", type=SetType.HASH_NET, family=Family.IP, elements=members)
    found = [key[0] for key, _ in intervals_of(known, Family.IP)]
    assert all(a.high < b.low for a, b in pairwise(found))
    for address in range(32):
        fits = [(net.size, drop) for net, drop in prefixes.items() if address in net]
        assert any(address in one for one in found) is bool(fits and not min(fits)[1])
