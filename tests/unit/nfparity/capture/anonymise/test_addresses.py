"""Properties of anonymised addresses that hold for every key."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nfparity.capture.anonymise.addresses import BLOCKS, Addresses, Ranges, is_well_known
from translate.ir import Family, format_address, parse_address

KEYS = st.binary(min_size=16, max_size=32)
BITS = st.sampled_from([32, 128])


@st.composite
def near(draw: st.DrawFn, count: int) -> tuple[int, list[int]]:
    """Addresses of one family, some of which share much."""
    bits = draw(BITS)
    base = draw(st.integers(0, (1 << bits) - 1))
    flips = st.integers(0, bits).flatmap(lambda n: st.integers(0, (1 << n) - 1))
    return bits, [base, *(base ^ draw(flips) for _ in range(count - 1))]


def shared(bits: int, a: int, b: int) -> int:
    return bits - (a ^ b).bit_length()


@given(KEYS, near(4))
def test_what_two_addresses_share_they_go_on_sharing(key: bytes, drawn: tuple[int, list[int]]) -> None:
    bits, values = drawn
    made = Addresses(key, Ranges())
    for a in values:
        for b in values:
            if shared(bits, a, b) >= (8 if bits == 32 else 96) or a >> 32 != 0xFFFF:
                got = shared(bits, made.address(bits, a), made.address(bits, b))
                assert got == shared(bits, a, b)


@given(KEYS, near(2), st.integers(0, 200))
def test_a_range_stays_a_range(key: bytes, drawn: tuple[int, list[int]], length: int) -> None:
    bits, (low, other) = drawn
    high = min(low + length, (1 << bits) - 1)
    ranges = Ranges()
    ranges.add(bits, low, high)
    ranges.add(bits, min(low, other), max(low, other))
    made = Addresses(key, ranges)
    first, last = made.range(bits, low, high)
    got = sorted(made.address(bits, value) for value in range(low, high + 1))
    assert got == list(range(first, last + 1))


@given(KEYS, near(1), st.integers(1, 30))
def test_the_ends_of_a_network_stay_its_ends(key: bytes, drawn: tuple[int, list[int]], length: int) -> None:
    bits, (value,) = drawn
    ranges = Ranges()
    ranges.add_network(bits, value, length)
    made = Addresses(key, ranges)
    span = (1 << (bits - length)) - 1
    assert made.address(bits, value & ~span) & span == 0
    assert made.address(bits, value | span) & span == span


@given(KEYS, BITS, st.data())
def test_kinds_of_addresses_stay_kinds(key: bytes, bits: int, data: st.DataObject) -> None:
    made = Addresses(key, Ranges())
    for value, length in (*BLOCKS[bits].fixed, *BLOCKS[bits].kept):
        inside = value | data.draw(st.integers(0, (1 << (bits - length)) - 1))
        assert made.address(bits, inside) >> (bits - length) == value >> (bits - length)


def test_what_is_special_to_every_host_stays() -> None:
    made = Addresses(bytes(16), Ranges())
    for text in ("0.0.0.0", "127.0.0.53", "169.254.20.10", "224.0.0.1", "255.255.255.255", "255.255.0.0"):
        assert made.address(32, parse_address(Family.IP, text)) == parse_address(Family.IP, text)
    for text in ("::", "::1", "ff02::1"):
        assert made.address(128, parse_address(Family.IP6, text)) == parse_address(Family.IP6, text)


def test_what_holds_an_address_of_ipv4_holds_the_new_one() -> None:
    made = Addresses(bytes(range(16)), Ranges())
    new = made.address(32, parse_address(Family.IP, "198.51.100.7"))
    for text, prefix in (("::ffff:198.51.100.7", "::ffff:0:0"), ("64:ff9b::198.51.100.7", "64:ff9b::")):
        got = made.address(128, parse_address(Family.IP6, text))
        assert got == parse_address(Family.IP6, prefix) | new


def test_link_local_addresses_of_ipv6_do_not_keep_the_hardware_address() -> None:
    made = Addresses(bytes(range(16)), Ranges())
    text = format_address(Family.IP6, made.address(128, parse_address(Family.IP6, "fe80::fc:ff:fe00:1")))
    assert text.startswith("fe80::")
    assert "ff:fe00" not in text


def test_a_solicited_node_group_stays_one_but_of_another_address() -> None:
    made = Addresses(bytes(range(16)), Ranges())
    for text in ("ff02::1:ff00:1", "ff02::1:ffab:cdef"):
        old = parse_address(Family.IP6, text)
        assert made.address(128, old) >> 24 == old >> 24
        assert made.address(128, old) != old
        assert not is_well_known(128, old, 128)
    group = parse_address(Family.IP6, "ff02::1:ff00:0")
    assert made.prefix(128, group, 104) == group
    assert is_well_known(128, group, 104)
    assert not is_well_known(128, group, 105)


def test_a_range_that_is_a_prefix_forces_nothing() -> None:
    ranges = Ranges()
    ranges.add(32, parse_address(Family.IP, "198.51.100.0"), parse_address(Family.IP, "198.51.100.255"))
    assert not ranges.nodes[32]


def test_another_key_makes_others() -> None:
    value = parse_address(Family.IP, "198.51.100.7")
    assert len({Addresses(bytes([n] * 16), Ranges()).address(32, value) for n in range(50)}) > 40
