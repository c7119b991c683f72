"""Marks from a hash; the numbers are those of iptables-legacy (``tests/kernel/test_hash_marks.py``)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backends.model.packet import Fragment, Packet, PortClass, Tuple
from backends.simulator.conntrack.connection import ConntrackEntry, template_of
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.undecided import Undecided
from backends.simulator.walk.hashmarks import hash_mark
from translate.ir import Family, HashMark, Template

WORD = 0xFFFFFFFF
UDP = Packet(family=Family.IP, src=0x0A000001, dst=0x0A000002, proto=17, sport=7, dport=53)


def action(**changed: Any) -> HashMark:
    usual: dict[str, Any] = {
        **dict.fromkeys(("source_mask", "destination_mask", "port_mask", "modulus"), WORD),
        "port_set": 0,
        "protocol_mask": 0xFF,
        "seed": 5,
        "offset": 0,
    }
    return HashMark(**{**usual, **changed})


def marked(packet: Packet, **changed: Any) -> int | None:
    return hash_mark(action(**changed), Skb(packet))


def changed(packet: Packet, **fields: Any) -> Packet:
    return replace(packet, **fields)


def test_both_directions_have_one_mark() -> None:
    answer = changed(UDP, src=UDP.dst, dst=UDP.src, sport=53, dport=7)
    assert marked(UDP) == marked(answer)
    assert marked(UDP) != marked(changed(UDP, sport=53, dport=8))


def test_the_mark_is_between_its_limits() -> None:
    marks = {marked(changed(UDP, sport=port), modulus=3, offset=10) for port in range(50)}
    assert marks == {10, 11, 12}
    assert marked(UDP, modulus=1, offset=9) == 9
    assert marked(UDP, modulus=2, offset=WORD) in (WORD, 0)


def test_a_fragment_has_no_ports() -> None:
    first = changed(UDP, fragment=Fragment(0, more=True))
    assert marked(first) == marked(UDP, port_mask=0) == marked(first, port_set=5)
    assert marked(UDP, port_mask=0, port_set=5) != marked(UDP, port_mask=0)


def test_an_error_has_the_mark_of_what_it_quotes() -> None:
    error = Packet(
        family=Family.IP, src=9, dst=UDP.src, proto=1, icmp_type=3, icmp_code=3, icmp_id=0, quoted=UDP
    )
    assert marked(error) == marked(UDP)
    assert marked(changed(error, quoted=None, payload=b"\x45" + bytes(18))) is None


def test_a_connection_has_the_mark_of_its_sources() -> None:
    original, reply = Tuple(1, 2, 17, 7, 53), Tuple(3, 1, 17, 54, 7)
    skb = Skb(UDP, entry=ConntrackEntry(original, reply))
    same = Packet(family=Family.IP, src=1, dst=3, proto=17, sport=7, dport=54)
    assert hash_mark(action(by_connection=True), skb) == marked(same)
    assert hash_mark(action(by_connection=True), Skb(UDP)) is None
    empty = Skb(UDP, entry=template_of(Template(zone=1)))
    nothing = Packet(family=Family.IP, src=0, dst=0, proto=0)
    assert hash_mark(action(by_connection=True), empty) == marked(nothing)


def test_a_picked_port_leaves_the_mark_open_if_it_is_hashed() -> None:
    picked = changed(UDP, sport=PortClass(1024, 65535))
    with pytest.raises(Undecided, match="a port that the kernel picks"):
        marked(picked)
    assert marked(picked, port_mask=0xFFFF) == marked(UDP, port_mask=0xFFFF)
    assert marked(picked, port_set=0xFFFF0000) == marked(UDP, port_set=0xFFFF0000)
    assert marked(picked, modulus=1, offset=5) == 5


def test_data_of_a_later_fragment_are_taken_for_an_error() -> None:
    inner = bytes.fromhex("4500001c00010000401100000a0000010a00000200070035")
    later = Packet(
        family=Family.IP, src=8, dst=9, proto=1, fragment=Fragment(3), payload=b"\3\3" + bytes(6) + inner
    )
    assert marked(later) == marked(UDP)
    assert marked(changed(later, payload=b"\3\3" + bytes(6) + inner[:19])) is None


@pytest.mark.parametrize(
    ("extension", "ports"),
    [("", True), ("3c 11000104 00000000", True), ("2c 1100000000000005", False), ("33 1104", False)],
)
def test_headers_behind_an_error_of_ipv6(extension: str, ports: bool) -> None:
    kind, _, header = extension.partition(" ")
    proto = bytes.fromhex(kind) or b"\x11"
    body = bytes.fromhex(header) + bytes.fromhex("00070035")
    addresses = (1).to_bytes(16, "big") + (2).to_bytes(16, "big")
    inner = bytes.fromhex("60000000000c") + proto + b"\x40" + addresses + body
    error = Packet(family=Family.IP6, src=8, dst=9, proto=58, icmp_type=1, icmp_code=4, payload=inner)
    plain = Packet(family=Family.IP6, src=1, dst=2, proto=17, sport=7, dport=53)
    whole = (1 << 128) - 1
    masks = {"source_mask": whole, "destination_mask": whole, "protocol_mask": 0 if kind == "33" else 0xFF}
    expected = marked(plain, **masks, **({} if ports else {"port_mask": 0}))
    assert marked(error, **masks) == expected
