from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from backends.model.conversation import Conversation
from backends.model.node import node_from_json
from backends.model.packet import Fragment, Packet
from backends.wire import parsing
from backends.wire.frames import build, identity
from backends.wire.parsing import FrameError, Parsed, parse
from harness.corpus.random.flows import random_flows
from translate.errors import UnsupportedError
from translate.ir import Family, Protocol, TcpFlag, parse_address
from translate.read import read_ruleset

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
FLAGS = st.integers(0, 63).map(TcpFlag)


def address(text: str) -> int:
    return parse_address(Family.IP, text)


def _packet(proto: int, **fields: Any) -> st.SearchStrategy[Packet]:
    return st.builds(
        Packet,
        family=st.just(Family.IP),
        src=U32,
        dst=U32,
        proto=st.just(proto),
        ttl=st.integers(1, 255),
        payload=st.binary(max_size=60),
        **fields,
    )


TCP = _packet(6, sport=U16, dport=U16, flags=FLAGS, seq=U32, ack=U32)
SYN = _packet(6, sport=U16, dport=U16, flags=st.just(TcpFlag.SYN), seq=U32, mss=U16)
UDP = _packet(17, sport=U16, dport=U16)
LITE = _packet(136, sport=U16, dport=U16)
SCTP = _packet(132, sport=U16, dport=U16)
ECHO = _packet(1, icmp_type=st.sampled_from((0, 8)), icmp_code=st.just(0), icmp_id=U16)
OTHER = _packet(99)
PLAIN = st.one_of(TCP, SYN, UDP, LITE, SCTP, ECHO, OTHER)
ERROR = st.builds(
    Packet,
    family=st.just(Family.IP),
    src=U32,
    dst=U32,
    proto=st.just(1),
    icmp_type=st.sampled_from((3, 11, 12)),
    icmp_code=st.integers(0, 15),
    quoted=PLAIN,
)
ANY = st.one_of(PLAIN, ERROR)


def fold(data: bytes) -> int:
    """The Internet checksum as RFC 1071 spells it: word by word, carries added back."""
    total = 0
    for i in range(0, len(data), 2):
        total += int.from_bytes(data[i : i + 2].ljust(2, b"\0"), "big")
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@given(ANY)
def test_what_is_built_is_read_back(packet):
    parsed = parse(build(packet))
    assert parsed.faults == ()
    assert parsed.packet == packet


@given(st.one_of(TCP, UDP))
def test_checksums_are_those_of_rfc_1071(packet):
    data = build(packet)
    assert fold(data[:20]) == 0
    body = data[20:]
    pseudo = data[12:20] + bytes((0, packet.proto)) + len(body).to_bytes(2, "big")
    assert fold(pseudo + body) == 0


@given(ANY, st.data())
def test_a_flipped_bit_does_not_go_unseen(packet, data):
    # Payload of UDP-Lite and of unknown protocols is covered by nothing; its bits are elsewhere.
    sound = build(packet)
    inner = packet if packet.quoted is None else packet.quoted
    assume(inner.proto in (1, 6, 17, 132))
    # The version's bit that makes 6 of 4 is left alone: IPv6 has no checksum of the header.
    bit = data.draw(st.integers(0, 8 * len(sound) - 1).filter(lambda bit: bit != 5))
    spoiled = bytearray(sound)
    spoiled[bit // 8] ^= 1 << bit % 8
    if inner.proto == 17:
        assume(spoiled[26:28] != b"\0\0")  # "no checksum"
    with contextlib.suppress(FrameError):
        assert parse(bytes(spoiled)).faults != ()


@given(st.one_of(TCP, UDP, ECHO, SCTP, LITE, ERROR))
def test_bad_checksum_is_bad(packet):
    (fault,) = parse(build(replace(packet, bad_checksum=True))).faults
    assert fault.startswith("wrong ")
    assert "IP header" not in fault
    assert "quoted" not in fault


def test_bad_udp_checksum_is_never_the_absence_of_one():
    for port in range(0x10000):
        packet = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=port, dport=0, bad_checksum=True)
        assert build(packet)[26:28] != b"\0\0"


def test_a_udp_packet_without_checksum_is_fine():
    data = bytearray(build(Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4)))
    data[26:28] = b"\0\0"
    assert parse(bytes(data)).faults == ()


def test_wrong_checksum_inside_an_icmp_error_is_named():
    inner = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, payload=b"tag")
    data = bytearray(
        build(Packet(family=Family.IP, src=9, dst=1, proto=1, icmp_type=3, icmp_code=3, quoted=inner))
    )
    data[28 + 20] ^= 1  # the quoted source port, and the outer sum made to fit
    data[22:24] = b"\0\0"
    data[22:24] = fold(bytes(data[20:])).to_bytes(2, "big")
    assert parse(bytes(data)).faults == ("quoted packet: wrong UDP checksum",)


def test_a_quotation_of_eight_bytes_still_tells_the_packet():
    # RFC 792 asks for no more than the header and eight bytes.
    inner = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=3, dport=4, seq=77, payload=b"long")
    error = Packet(family=Family.IP, src=9, dst=1, proto=1, icmp_type=3, icmp_code=3, quoted=inner)
    cut = build(error)[: 28 + 28]
    parsed = parse(cut[:2] + len(cut).to_bytes(2, "big") + cut[4:])
    assert parsed.packet.quoted is not None
    assert (parsed.packet.quoted.sport, parsed.packet.quoted.dport) == (3, 4)
    assert identity(parsed.packet) == identity(error)


@given(ANY, U32, U32, U16, st.integers(1, 255))
def test_identity_survives_translation(packet, src, dst, port, ttl):
    changed = replace(packet, src=src, dst=dst, ttl=ttl, mark=5)
    if packet.has_ports:
        changed = replace(changed, sport=port, dport=port)
    assert identity(changed) == identity(packet)


def test_identity_tells_packets_apart():
    udp = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, payload=b"a")
    tcp = replace(udp, proto=6, seq=1)
    error = Packet(family=Family.IP, src=2, dst=1, proto=1, icmp_type=3, icmp_code=3, quoted=udp)
    packets = [
        udp,
        replace(udp, payload=b"b"),
        replace(udp, proto=136),
        tcp,
        replace(tcp, seq=2),
        error,
    ]
    assert len({identity(p) for p in packets}) == len(packets)


@pytest.mark.parametrize(
    "data", [b"", b"E" * 19, b"\x60" + bytes(38), b"\x46" + bytes(19), b"\x41" + bytes(30)]
)
def test_no_packet_at_all(data):
    with pytest.raises(FrameError):
        parse(data)


def test_lengths_that_lie():
    data = build(Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, payload=b"12345678"))
    assert any("IP length 36, but 30 bytes" in f for f in parse(data[:30]).faults)


def test_fragments_are_named():
    data = bytearray(build(Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4)))
    data[6] |= 0x20
    data[10:12] = b"\0\0"
    data[10:12] = fold(bytes(data[:20])).to_bytes(2, "big")
    parsed = parse(bytes(data))
    assert parsed.faults == ()
    assert parsed.packet.fragment == Fragment(0, more=True, id=0)


@pytest.mark.parametrize(
    ("fragment", "payload"), [(Fragment(0, True, 7), bytes(8)), (Fragment(185, False, 9), b"12345678")]
)
@pytest.mark.parametrize("family", Family)
def test_a_fragment_is_read_as_it_was_written(family, fragment, payload):
    packet = Packet(
        family=family, src=1, dst=2, proto=17, sport=3, dport=4, payload=payload, fragment=fragment
    )
    if packet.is_later_fragment:
        packet = replace(packet, sport=None, dport=None)
    data = build(packet)
    assert len(data) == packet.length
    assert parse(data) == Parsed(packet)


def test_the_checksum_of_a_first_fragment_does_not_hold_for_it_alone():
    packet = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4, fragment=Fragment(0, True, 7))
    data = bytearray(build(packet))
    data[6] &= ~0x20
    data[10:12] = b"\0\0"
    data[10:12] = fold(bytes(data[:20])).to_bytes(2, "big")
    assert parse(bytes(data)).faults == ("wrong UDP checksum",)


def test_what_has_no_wire_form_is_refused():
    dccp = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.DCCP, sport=3, dport=4)
    with pytest.raises(UnsupportedError) as caught:
        build(dccp)
    assert caught.value.refusals[0].feature == "dccp"


def test_scapy_reads_the_same():
    inet = pytest.importorskip("scapy.layers.inet")
    packet = Packet(
        family=Family.IP,
        src=address("10.0.0.1"),
        dst=address("10.0.0.2"),
        proto=6,
        sport=1000,
        dport=80,
        flags=TcpFlag.SYN | TcpFlag.ACK,
        seq=5,
        ack=6,
        ttl=61,
    )
    data = build(packet)
    theirs = inet.IP(data)
    assert (theirs.src, theirs.dst, theirs.ttl, theirs.len) == ("10.0.0.1", "10.0.0.2", 61, len(data))
    assert (theirs[inet.TCP].sport, theirs[inet.TCP].seq, str(theirs[inet.TCP].flags)) == (1000, 5, "SA")
    theirs.chksum = theirs[inet.TCP].chksum = None
    assert bytes(theirs) == data


@pytest.mark.parametrize("kind", [3, 4, 5, 11, 12])
def test_an_error_that_quotes_nothing_is_known_again(kind: int) -> None:
    bare = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=kind, icmp_code=0, payload=b"nothing.")
    found = parse(build(bare))
    assert found.faults == ()
    assert identity(found.packet) == identity(bare)


@pytest.mark.parametrize(
    ("options", "mss"),
    [
        ("020405b4", 1460),
        ("0101020405b4", 1460),
        ("0204057802040400", 1400),
        ("01030307020405b4", 1460),
        ("0000020405b4", 1460),  # TCPMSS takes the end of the list for a filler
        ("0300020405b4", 1460),
        ("0206aabbccdd", None),
        ("0204", 0),  # zeros follow
        ("080a0000000000000000", None),
    ],
)
def test_the_segment_size_is_the_first_that_tcpmss_finds(options: str, mss: int | None) -> None:
    bare = build(Packet(family=Family.IP, src=1, dst=2, proto=6, sport=3, dport=4))
    more = bytes.fromhex(options)
    more += bytes(-len(more) % 4)
    segment = bare[20:32] + bytes([0x50 + len(more) * 4]) + bare[33:] + more
    header = bare[:2] + (20 + len(segment)).to_bytes(2, "big") + bare[4:20]
    assert parse(header + segment).packet.mss == mss


CORPUS = Path(__file__).parents[3] / "corpus/rulesets"
PLACES = (
    (Family.IP, "kind-node/rules.iptables-save", "kind-node/worker.json"),
    (Family.IP6, "six/rules.ip6tables-save", "six/node.json"),
)


def misread(family: Family, rules: str, node: str) -> list[str]:
    """The random flows whose first packet is another one when it is read from its frame."""
    ruleset = read_ruleset((CORPUS / rules).read_bytes(), name=rules, family=family)
    place = node_from_json((CORPUS / node).read_text(), name=node)
    ids = []
    for flow in random_flows(ruleset, place, seed=0, count=200, truncating=True):
        sent = Conversation(flow).emit(flow.first)
        assert sent is not None
        read = parse(build(sent.packet))
        assert read.packet.truncated is sent.packet.truncated
        if identity(read.packet) != identity(sent.packet) or bool(read.faults) != sent.packet.bad_checksum:
            ids.append(flow.id)
    return ids


@pytest.mark.parametrize(("family", "rules", "node"), PLACES)
def test_a_random_packet_is_known_again(
    family: Family, rules: str, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert misread(family, rules, node) == []
    right = parsing._parse_icmp

    def that_quotes(
        body: bytes, pseudo: int, whole: bool, fields: dict[str, object], faults: list[str]
    ) -> None:
        """As it was: the payload of an error that quotes no packet was not read."""
        right(body, pseudo, whole, fields, faults)
        if body[0] in (parsing._ERRORS_6 if pseudo else parsing._ERRORS) and "quoted" not in fields:
            fields.pop("payload", None)
            faults.append("ICMP error quotes nothing")

    monkeypatch.setattr(parsing, "_parse_icmp", that_quotes)
    assert misread(family, rules, node) != []
