from __future__ import annotations

import pytest

from backends.model.packet import Packet
from backends.simulator.matching.undecided import Undecided
from backends.simulator.walk.prefixes import translated, with_prefix
from translate.ir import Family, Protocol, TranslatePrefix, format_address, parse_address


def address(text: str) -> int:
    return parse_address(Family.IP6, text)


def action(old: str, new: str, *, source: bool = True) -> TranslatePrefix:
    (old, old_bits), (new, new_bits) = old.split("/"), new.split("/")
    return TranslatePrefix(
        source=source,
        old=address(old),
        old_bits=int(old_bits),
        new=address(new),
        bits=max(int(old_bits), int(new_bits)),
    )


def words(number: int) -> int:
    return sum(number >> 16 * n & 0xFFFF for n in range(8)) % 0xFFFF


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        # RFC 6296, 3.6
        ("fd01:203:405:1::1234", "fd01:203:405::/48", "2001:db8:1::/48", "2001:db8:1:d550::1234"),
        ("2001:db8:1:d550::1234", "2001:db8:1::/48", "fd01:203:405::/48", "fd01:203:405:1::1234"),
        ("fd00::1", "fd00::/64", "fd01::/64", "fd01::fffe:0:0:1"),
        ("fd00::ffff:ffff:0:1", "fd00::/64", "fd01::/64", "fd01::ffff:ffff:fffe:1"),
        ("fd00::1:0:0:1", "fd00::/64", "fd01::/64", "fd01::1"),  # 0xffff becomes 0
        ("fd00::5", "fd00::/16", "fd00::/16", "fd00::5"),
        ("ffff:1:2:3::5", "fd00::/8", "fe00::/20", "fe00:1:2:ff02::5"),
    ],
)
def test_an_address_keeps_its_checksum(before: str, old: str, new: str, after: str) -> None:
    result = translated(address(before), action(old, new))
    assert result is not None
    assert format_address(Family.IP6, result) == after


def test_no_word_is_left() -> None:
    ones = address("fd00::ffff:ffff:ffff:ffff")
    assert translated(ones, action("fd00::/64", "fd01::/64")) is None
    packet = Packet(family=Family.IP6, src=ones, dst=1, proto=Protocol.UDP, sport=1, dport=2)
    with pytest.raises(Undecided, match="drops the packet"):
        with_prefix(packet, action("fd00::/64", "fd01::/64"))


def test_the_quoted_address_is_translated_if_it_has_the_prefix() -> None:
    inside, other = address("fd00:0:0:1::9"), address("fd02::9")
    for quoted_dst, changes in ((inside, True), (other, False)):
        quoted = Packet(family=Family.IP6, src=other, dst=quoted_dst, proto=Protocol.UDP, sport=1, dport=2)
        error = Packet(family=Family.IP6, src=inside, dst=other, proto=58, icmp_type=1, quoted=quoted)
        changed = with_prefix(error, action("fd00::/48", "fd01::/48"))
        assert changed.src != inside
        assert changed.quoted is not None
        assert (changed.quoted.dst != quoted_dst) is changes
    answer = with_prefix(error, action("fd02::/48", "fd01::/48", source=False))
    assert answer.dst >> 80 == address("fd01::") >> 80
    assert answer.quoted is not None
    assert answer.quoted.src == answer.dst
