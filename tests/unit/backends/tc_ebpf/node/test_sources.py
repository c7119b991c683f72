"""Source addresses as a trie: every destination finds in it what choosing by the rules would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.model.node import Address
from backends.simulator.routing.source_address import select_source
from backends.tc_ebpf.node.sources import OwnAddress, Region, sources
from translate.ir import Family, parse_address

TEXTS = (
    "fe80::1/64",
    "fd00:10:244::1/64",
    "fd00:10:244:1::1/64",
    "fd00:10:245::1/112",
    "2001:db8::2/64",
    "2001:db8::2:1/96",
    "2001:db8:1::2/48",
    "2002:c000:204::1/16",
    "2001::1/32",
    "fec0::1/64",
    "::ffff:192.0.2.1/96",
    "2001:10::1/28",
)


def own(text: str, index: int) -> OwnAddress:
    address, _, length = text.partition("/")
    return OwnAddress(index=index, value=parse_address(Family.IP6, address), length=int(length))


def found(regions: list[Region], dst: int, bits: int = 128) -> int:
    fitting = [r for r in regions if (dst ^ r[0]) >> (bits - r[1]) == 0]
    return max(fitting, key=lambda r: r[1])[2] if fitting else 0


ADDRESSES = [parse_address(Family.IP6, text.partition("/")[0]) for text in TEXTS]
NEAR = st.builds(
    lambda near, flip, low: near ^ flip >> low,
    st.sampled_from(ADDRESSES),
    st.integers(0, 2**128 - 1),
    st.integers(0, 128),
)
GROUPS = st.integers(0, 2**120 - 1).map(lambda rest: 0xFF << 120 | rest)


@given(
    st.lists(st.tuples(st.sampled_from(TEXTS), st.integers(1, 3)), max_size=7, unique_by=lambda t: t[0]),
    st.integers(1, 3),
    st.one_of(NEAR, GROUPS, st.integers(0, 2**128 - 1), st.just(1)),
)
def test_the_trie_says_what_the_rules_say(given_: list[tuple[str, int]], index: int, dst: int) -> None:
    addresses = sorted((own(text, where) for text, where in given_), key=lambda a: a.index)
    near = dst == 1 or dst >> 118 == 0xFE80 >> 6 or dst >> 120 == 0xFF
    asked = [
        (Address(Family.IP6, a.value, a.length), str(a.index))
        for a in addresses
        if not near or a.index == index
    ]
    assert found(sources(Family.IP6, addresses, index), dst) == select_source(asked, dst, str(index))


def test_what_the_next_shorter_prefix_says_is_left_out() -> None:
    only = own("2001:db8::2/64", 1)
    assert sources(Family.IP6, [only], 1) == [(0, 0, only.value)]


def test_an_address_that_is_not_ready_or_ages_comes_last() -> None:
    tentative = OwnAddress(index=1, value=5, length=64, usable=False)
    aging = OwnAddress(index=1, value=0x20010DB8 << 96 | 6, length=64, aging=True)
    fresh = OwnAddress(index=2, value=0x20010DB9 << 96 | 7, length=64)
    assert found(sources(Family.IP6, [tentative, aging], 1), aging.value + 1) == aging.value
    assert found(sources(Family.IP6, [aging, fresh], 1), aging.value + 1) == fresh.value


@pytest.mark.parametrize(
    ("next_hop", "source"),
    [("8.8.8.8", "192.0.2.1"), ("198.51.100.7", "198.51.100.1"), ("192.0.2.9", "192.0.2.1")],
)
def test_ipv4_asks_in_whose_network_the_next_hop_is(next_hop: str, source: str) -> None:
    def ip(text: str) -> int:
        return parse_address(Family.IP, text)

    addresses = [
        OwnAddress(index=1, value=ip("192.0.2.1"), length=24),
        OwnAddress(index=1, value=ip("198.51.100.1"), length=24),
        OwnAddress(index=1, value=ip("198.51.100.129"), length=25, secondary=True),
    ]
    assert found(sources(Family.IP, addresses, 1), ip(next_hop), 32) == ip(source)
