from __future__ import annotations

import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Again, Flow, IcmpError, Reply, Send
from backends.model.node import node_from_json
from backends.model.packet import Packet
from backends.simulator import simulate
from backends.wire.frames import build
from harness.corpus.formats.capturefile import read_capture, write_capture
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.pcap import export_capture, import_capture, import_packets
from translate.errors import InputError, ParseError
from translate.ir import Family, TcpFlag

LINES = (
    b'{"id": "udp-1", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 40000,'
    b' "dport": 53, "payload": "0102030405060708", "then": [{"reply": {}}, {"again": {}}, {"reply": {}}]}\n'
    b'{"id": "tcp-2", "in": "eth0", "src": "172.18.0.9", "dst": "10.96.0.1", "proto": "tcp", "sport": 40001,'
    b' "dport": 443, "then": [{"reply": {"flags": "SA"}}, {"again": {"flags": "A"}},'
    b' {"again": {"flags": "FA"}}, {"reply": {"flags": "R"}}]}\n'
    b'{"id": "icmp-3", "in": "pod5", "src": "10.244.0.5", "dst": "203.0.113.7", "proto": "icmp",'
    b' "icmp": "echo-request", "icmp_id": 7, "payload": "0102030405060708", "then": [{"reply": {}}]}\n'
    b'{"id": "udp-4", "in": null, "src": "172.18.0.2", "dst": "203.0.113.7", "proto": "udp", "sport": 5,'
    b' "dport": 9, "payload": "00", "then": [{"error": "port-unreachable"}]}\n'
)


@pytest.fixture
def flows(worker: Job) -> tuple[Flow, ...]:
    return read_flows(LINES, name="f", node=worker.node)


@pytest.mark.parametrize("name", ["c.pcap", "c.pcapng"])
def test_importing_what_was_exported_gives_it_back(
    name: str, flows: tuple[Flow, ...], worker: Job, tmp_path: Path
) -> None:
    path = tmp_path / name
    assert export_capture(path, flows) == 13
    assert import_capture(path, node=worker.node).flows == flows
    assert len(read_capture(path)) == 13


@pytest.mark.parametrize("name", ["c.pcap", "c.pcapng"])
def test_tcpdump_reads_it(name: str, flows: tuple[Flow, ...], tmp_path: Path) -> None:
    tcpdump = shutil.which("tcpdump", path="/usr/bin:/usr/sbin:/bin:/sbin")
    if tcpdump is None:
        pytest.skip("tcpdump is not installed")
    path = tmp_path / name
    export_capture(path, flows)
    done = subprocess.run([tcpdump, "-nvvr", str(path)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert sum(line.startswith("00:00:0") for line in lines) == 13
    assert "10.244.0.5.40000 > 10.96.0.10.53" in done.stdout
    assert "10.96.0.10.53 > 10.244.0.5.40000" in done.stdout
    assert "echo request, id 7" in done.stdout
    assert "udp port 9 unreachable" in done.stdout
    assert "incorrect" not in done.stdout.replace("[bad udp cksum", "incorrect"), "checksums are right"


def test_as_the_packets_left(flows: tuple[Flow, ...], worker: Job, tmp_path: Path) -> None:
    path = tmp_path / "left.pcap"
    off = replace(flows[1], steps=flows[1].steps[:2])
    export_capture(path, [off], [simulate(worker, off)])
    first, reply = import_packets(path, node=worker.node).flows[0].first, read_capture(path)[1]
    assert str(first.packet) == "tcp 172.18.0.2:1024 > 172.18.0.3:6443"
    assert reply.data is not None
    assert reply.data[12:16] == bytes((10, 96, 0, 1))


def test_a_second_syn_begins_again(worker: Job, tmp_path: Path) -> None:
    (flow,) = read_flows(LINES.splitlines()[1], name="f", node=worker.node)
    path = tmp_path / "c.pcap"
    write_capture(path, [(n, build(flow.first.packet)) for n in range(2)])
    (found,) = import_capture(path, node=worker.node).flows
    assert [type(s) for s in found.steps] == [Send, Send]


def test_a_router_that_answers(worker: Job, flows: tuple[Flow, ...], tmp_path: Path) -> None:
    error = replace(flows[3], steps=(flows[3].steps[0], IcmpError(type=11, code=0, source=0xCB007101)))
    export_capture(tmp_path / "c.pcap", [error])
    (found,) = import_capture(tmp_path / "c.pcap", node=worker.node).flows
    assert found.steps[1] == IcmpError(type=11, code=0, source=0xCB007101)


def ethernet(packet: Packet, *, vlan: bytes = b"", ethertype: bytes = b"\x08\x00") -> bytes:
    return bytes(12) + vlan + ethertype + build(packet)


def test_frames_that_cannot_become_flows_are_counted(
    worker: Job, flows: tuple[Flow, ...], tmp_path: Path
) -> None:
    from scapy.utils import RawPcapWriter

    path = tmp_path / "c.pcap"
    writer = RawPcapWriter(str(path), linktype=1)
    packet = flows[0].first.packet
    whole = build(packet)
    fragment = whole[:6] + b"\x20\x00" + whole[8:]
    frames = [
        ethernet(packet),
        ethernet(packet, vlan=b"\x81\x00\x00\x05"),
        ethernet(packet, ethertype=b"\x86\xdd"),
        bytes(12) + b"\x08\x06" + bytes(28),
        bytes(12) + b"\x08\x00" + fragment,
        bytes(12) + b"\x08\x00" + whole[:12],
    ]
    writer.write_header(None)
    for number, frame in enumerate(frames):
        writer.write_packet(frame, sec=number, usec=0)
    writer.close()
    imported = import_packets(path, node=worker.node)
    assert [f.steps[1:] for f in imported.flows] == [(Again(),)]
    assert imported.left_out == {"not IP": (3, 4), "a fragment": (5,), "not a whole IP header": (6,)}
    assert imported.left_out_lines() == (
        "2 frames (3-4): not IP",
        "1 frame (5): a fragment",
        "1 frame (6): not a whole IP header",
    )


LINES6 = (
    b'{"id": "udp-1", "in": "pod0", "src": "fd00:10:244::5", "dst": "fd00:10:96::a", "proto": "udp",'
    b' "sport": 40000, "dport": 53, "payload": "0102", "then": [{"reply": {}}, {"again": {}}]}\n'
    b'{"id": "tcp-2", "in": "eth0", "src": "2001:db8::9", "dst": "fd00:10:96::1", "proto": "tcp",'
    b' "sport": 40001, "dport": 443, "then": [{"reply": {"flags": "SA"}}, {"again": {"flags": "A"}}]}\n'
    b'{"id": "icmpv6-3", "in": "pod0", "src": "fd00:10:244::5", "dst": "2001:db8::7", "proto": "icmpv6",'
    b' "icmp": "echo-request", "icmp_id": 7, "payload": "0102", "then": [{"reply": {}}, {"again": {}}]}\n'
    b'{"id": "udp-4", "in": "pod0", "src": "fd00:10:244::5", "dst": "2001:db8::7", "proto": "udp",'
    b' "sport": 5, "dport": 9, "payload": "00", "then": [{"error": "port-unreachable"}]}\n'
)
NODE6 = node_from_json(
    """{"interfaces": {"eth0": ["2001:db8::2/64"], "pod0": ["fd00:10:244::1/64"]},
    "routes": [{"dst": "::/0", "via": "2001:db8::1", "dev": "eth0"}]}""",
    name="node6",
)


@pytest.mark.parametrize("name", ["c.pcap", "c.pcapng"])
def test_ipv6_there_and_back(name: str, tmp_path: Path) -> None:
    flows = read_flows(LINES6, name="f", node=NODE6)
    path = tmp_path / name
    assert export_capture(path, flows) == 11
    assert import_capture(path, node=NODE6).flows == flows


@pytest.mark.parametrize(
    ("linktype", "header"),
    [
        (1, bytes(12) + b"\x86\xdd"),
        (1, bytes(12) + b"\x81\x00\x00\x05\x86\xdd"),
        (101, b""),
        (229, b""),
        (113, bytes(14) + b"\x86\xdd"),
        (276, b"\x86\xdd" + bytes(18)),
        (0, b"\x1e\0\0\0"),
        (0, b"\0\0\0\x18"),
    ],
)
def test_ipv6_in_every_link_type(linktype: int, header: bytes, tmp_path: Path) -> None:
    (flow, *_) = read_flows(LINES6, name="f", node=NODE6)
    path = tmp_path / "c.pcap"
    write_frames(path, linktype, [header + build(flow.first.packet)])
    assert import_packets(path, node=NODE6).flows[0].first.packet == flow.first.packet


def write_frames(path: Path, linktype: int, frames: list[bytes], sent: int | None = None) -> None:
    """Write a pcap by hand: scapy does not write every link type."""
    contents = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, linktype)
    for number, frame in enumerate(frames):
        contents += struct.pack("<IIII", number, 0, len(frame), sent or len(frame)) + frame
    path.write_bytes(contents)


def extended(data: bytes, kind: int, header: bytes) -> bytes:
    """An IPv6 packet with one extension header; ``header`` begins behind its next-header byte."""
    length = int.from_bytes(data[4:6], "big") + len(header) + 1
    return data[:4] + length.to_bytes(2, "big") + bytes((kind,)) + data[7:40] + data[6:7] + header + data[40:]


def test_extension_headers_are_passed_over_and_fragments_named(tmp_path: Path) -> None:
    (flow, *_) = read_flows(LINES6, name="f", node=NODE6)
    whole = build(flow.first.packet)
    path = tmp_path / "c.pcap"
    frames = [
        extended(whole, 60, bytes(7)),  # destination options
        extended(whole, 44, bytes(7)),  # an atomic fragment
        extended(whole, 44, b"\0\0\x01" + bytes(4)),  # the first fragment of some
        extended(whole, 44, b"\0\x05\x00" + bytes(4)),  # the last one
        whole[:-3],
    ]
    write_frames(path, 101, frames)
    imported = import_packets(path, node=NODE6)
    (found,) = imported.flows
    assert found.first.packet == flow.first.packet
    assert found.steps[1:] == (Again(),)
    assert imported.left_out == {"a fragment": (3, 4), "not a whole packet": (5,)}


def test_what_keeps_a_link_going_is_no_flow(tmp_path: Path) -> None:
    solicitation = Packet(
        family=Family.IP6,
        src=0xFE80 << 112 | 1,
        dst=0xFF02 << 112 | 1,
        proto=58,
        icmp_type=135,
        icmp_code=0,
        payload=bytes(16),
    )
    write_frames(tmp_path / "c.pcap", 101, [build(solicitation)])
    assert import_packets(tmp_path / "c.pcap", node=NODE6).left_out == {
        "neighbour or listener discovery": (1,)
    }


def test_a_capture_that_kept_only_heads_is_not_guessed(tmp_path: Path) -> None:
    flows = read_flows(LINES6, name="f", node=NODE6)
    whole = build(flows[0].first.packet)
    write_frames(tmp_path / "c.pcap", 101, [whole[:48]], sent=len(whole))
    with pytest.raises(ParseError, match=r"1 frame \(1\): cut short by the capture"):
        import_capture(tmp_path / "c.pcap", node=NODE6)


def test_only_the_family_of_the_rules(worker: Job, flows: tuple[Flow, ...], tmp_path: Path) -> None:
    six = read_flows(LINES6, name="f", node=NODE6)
    path = tmp_path / "c.pcapng"
    export_capture(path, [flows[0], *six])
    imported = import_packets(path, node=worker.node, family=Family.IP)
    assert imported.flows == flows[:1]
    assert imported.left_out == {"IPv6, another address family than the rules'": tuple(range(5, 16))}


def test_no_capture(worker: Job, tmp_path: Path) -> None:
    path = tmp_path / "c.pcap"
    with pytest.raises(InputError, match="cannot be read"):
        import_capture(path, node=worker.node)
    for data in (b"", b"hello", b"\xd4\xc3\xb2\xa1" + bytes(4)):
        path.write_bytes(data)
        with pytest.raises(ParseError):
            import_capture(path, node=worker.node)


def test_flags_are_kept(worker: Job, flows: tuple[Flow, ...], tmp_path: Path) -> None:
    export_capture(tmp_path / "c.pcapng", flows)
    found = import_capture(tmp_path / "c.pcapng", node=worker.node).flows[1]
    assert found.steps[1] == Reply(flags=TcpFlag.SYN | TcpFlag.ACK)
    assert found.steps[3] == Again(flags=TcpFlag.FIN | TcpFlag.ACK)
