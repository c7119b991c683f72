from __future__ import annotations

import pytest

from backends.model.contract import Job
from backends.model.packet import Fragment, Packet, Routing
from harness.explain.packetspec import parse_packet
from translate.errors import ParseError
from translate.ir import TcpFlag


def packet(text: str, job: Job) -> Packet:
    return parse_packet(text, job.node).first.packet


def test_forms(worker: Job) -> None:
    flow = parse_packet("udp 10.244.0.5:40000 > 10.96.0.10:53 in pod5", worker.node)
    assert flow.first.entry == "pod5"
    assert str(flow.first.packet) == "udp 10.244.0.5:40000 > 10.96.0.10:53"
    assert parse_packet("udp 10.244.0.5 > 10.96.0.10:53", worker.node).first.entry == "pod5"
    assert packet("udp 10.244.0.5 > 10.96.0.10:53", worker).sport == 40000
    assert parse_packet("udp 10.244.0.5:40000 -> 10.96.0.10:53 in pod5", worker.node) == flow
    node = parse_packet("tcp 172.18.0.2:1 > 10.96.0.1:443 from node mark 0x4000 flags SA ttl 9", worker.node)
    assert node.first.entry is None
    assert (node.first.packet.mark, node.first.packet.ttl) == (0x4000, 9)
    assert node.first.packet.flags == TcpFlag.SYN | TcpFlag.ACK
    assert parse_packet("udp 10.244.0.5:1 > 10.96.0.10:53 in -", worker.node).first.entry is None
    ping = packet("icmp 10.244.0.5 > 10.244.1.4 type 13/0 id 7 bad-checksum", worker)
    assert (ping.icmp_type, ping.icmp_id, ping.bad_checksum) == (13, 7, True)
    assert packet("icmp 10.244.0.5 > 10.244.1.4 type port-unreachable", worker).icmp_id is None
    assert packet("47 10.244.0.5 > 10.244.1.4 payload 00ff", worker).payload == b"\x00\xff"


def test_the_processor(worker: Job) -> None:
    text = "udp 1.1.1.1:1 > 2.2.2.2:2 in pod5"
    assert (packet(text, worker).cpu, packet(f"{text} cpu 1", worker).cpu) == (0, 1)
    with pytest.raises(ParseError, match="'x' is not a processor"):
        packet(f"{text} cpu x", worker)


def test_headers_with_options(worker: Job) -> None:
    text = "udp [fd00::1]:1 > [fd00::2]:53 from node"
    assert packet(f"{text} hop 0 destination 3", worker).option_headers == (0, 3)
    with pytest.raises(ParseError, match="'32' is not a length of options"):
        packet(f"{text} hop 32", worker)
    with pytest.raises(ParseError, match="only packets of IPv6"):
        packet("udp 1.1.1.1:1 > 2.2.2.2:2 from node hop 0", worker)


def test_an_extension_header_is_no_protocol(worker: Job) -> None:
    with pytest.raises(ParseError, match="51 is an extension header of IPv6"):
        packet("proto-51 fd00::1 > fd00::2", worker)


def test_a_truncated_packet_has_the_first_bytes_of_its_header(worker: Job) -> None:
    text = "tcp 10.244.0.5:7 > 10.96.0.10:53"
    made = packet(f"{text} truncated 5 flags SA", worker)
    assert (made.truncated, made.payload, made.dport) == (True, bytes.fromhex("00070035") + bytes(1), None)
    assert str(made) == "tcp 10.244.0.5 > 10.96.0.10, 5 bytes of its header"
    for wrong, reason in (
        ("truncated 20", "no transport header of more than 20 bytes"),
        ("truncated 2 payload 00", "has no payload, length, checksum or fragment"),
    ):
        with pytest.raises(ParseError, match=reason):
            packet(f"{text} {wrong}", worker)


def test_fragments(worker: Job) -> None:
    text = "udp 10.244.0.5:1 > 10.96.0.10:53"
    first = packet(f"{text} fragment 0", worker)
    assert (first.fragment, first.dport) == (Fragment(0, more=True), 53)
    later = packet(f"{text} fragment 185", worker)
    assert (later.fragment, later.dport) == (Fragment(185), None)
    assert str(later) == "udp 10.244.0.5 > 10.96.0.10, a later fragment"
    for wrong in ("fragment 8001", "fragment 1 from node"):
        with pytest.raises(ParseError, match=r"offset|sends no fragments"):
            packet(f"{text} {wrong}", worker)
    with pytest.raises(ParseError, match="offset 1"):
        packet(f"{text} fragment 1".replace("udp", "tcp"), worker)


def test_a_routing_header(worker: Job) -> None:
    text = "udp [fd00::1]:1 > [fd00::2]:53 from node routing"
    assert packet(f"{text} 5", worker).routing == Routing(5, 0, 0)
    assert packet(f"{text} 5/1/2", worker).routing == Routing(5, 1, 2)
    for wrong in ("1/2/3/4", "256", "x"):
        with pytest.raises(ParseError, match="routing"):
            packet(f"{text} {wrong}", worker)
    with pytest.raises(ParseError, match="in a packet of IPv6"):
        packet("udp 1.1.1.1:1 > 2.2.2.2:2 from node routing 0", worker)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("", 1, "expected a protocol"),
        ("upd 1.1.1.1:1 > 2.2.2.2:2", 1, "unknown protocol 'upd'"),
        ("udp 1.1.1:1 > 2.2.2.2:2", 5, "expected a source address"),
        ("udp 1.1.1.1:1 2.2.2.2:2", 15, "expected > between"),
        ("udp 1.1.1.1:1 > ", 17, "expected a destination address"),
        ("udp 1.1.1.1:1 > 2.2.2.2", 17, "the destination has no port"),
        ("udp 1.1.1.1:x > 2.2.2.2:2", 5, "'x' is not a port"),
        ("udp 1.1.1.1:99999 > 2.2.2.2:2", 5, "'99999' is not a port"),
        ("udp 1.1.1.1:1 > [::1]:2", 17, "different families"),
        ("icmp 1.1.1.1:1 > 2.2.2.2", 18, "no ports"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 on pod5", 27, "unknown option 'on'"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 in", 29, "expected a value for in"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 in pod9", 30, "no interface 'pod9'"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 from pod5", 32, "expected node after from"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 in pod5 mark 1", 40, "only packets made on the node"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 flags S", 27, "only tcp has flags"),
        ("udp 1.1.1.1:1 > 2.2.2.2:2 id 5", 27, "only icmp has id"),
        ("tcp 1.1.1.1:1 > 2.2.2.2:2 flags XY", 33, "are not TCP flags"),
    ],
)
def test_errors_point_at_the_word(worker: Job, text: str, column: int, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_packet(text, worker.node)
    (one,) = caught.value.diagnostics
    assert message in one.message
    assert one.origin.column == column
