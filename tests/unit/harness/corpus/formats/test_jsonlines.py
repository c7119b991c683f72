from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send
from backends.model.node import Node, node_from_json
from backends.model.packet import Packet
from harness.corpus.formats.jsonlines import flow_to_json, read_flows, write_flows
from translate.errors import ParseError
from translate.ir import Family, Protocol, TcpFlag, parse_address

NODE = node_from_json(
    json.dumps(
        {
            "interfaces": {"eth0": ["192.168.0.2/24"], "pod0": ["10.244.0.1/24"], "pod1": ["10.244.0.1/32"]},
            "routes": [
                {"dst": "default", "via": "192.168.0.1", "dev": "eth0"},
                {"dst": "10.244.0.7/32", "dev": "pod1"},
            ],
        }
    ),
    name="node.json",
)
DNS = {
    "id": "dns",
    "in": "pod0",
    "src": "10.244.0.9",
    "dst": "10.96.0.10",
    "proto": "udp",
    "sport": 40000,
    "dport": 53,
}


def read(*flows: dict[str, object], node: Node | None = NODE) -> tuple[Flow, ...]:
    return read_flows("\n".join(json.dumps(f) for f in flows).encode(), name="f.jsonl", node=node)


def problems(*flows: dict[str, object]) -> list[str]:
    with pytest.raises(ParseError) as caught:
        read(*flows)
    return [f"{d.origin.line}:{d.origin.column}: {d.message}" for d in caught.value.diagnostics]


def test_smallest_line() -> None:
    (flow,) = read(DNS)
    assert flow.id == "dns"
    assert flow.source == "f.jsonl:1"
    assert flow.first.entry == "pod0"
    assert str(flow.first.packet) == "udp 10.244.0.9:40000 > 10.96.0.10:53"


@pytest.mark.parametrize(
    ("src", "entry"),
    [
        ("10.244.0.9", "pod0"),
        ("10.244.0.7", "pod1"),
        ("8.8.8.8", "eth0"),
        ("192.168.0.2", None),
        ("127.0.0.1", None),
    ],
)
def test_auto_is_the_reverse_route(src: str, entry: str | None) -> None:
    for given_in in ({"in": "auto"}, {}):
        (flow,) = read({k: v for k, v in DNS.items() if k != "in"} | {"src": src} | given_in)
        assert flow.first.entry == entry


def test_auto_needs_a_node() -> None:
    with pytest.raises(ParseError, match="auto needs a node"):
        read(DNS | {"in": "auto"}, node=None)


def test_every_step() -> None:
    then = [
        {"reply": {}},
        {"reply": {"flags": "SA"}},
        {"again": {"flags": ""}},
        {"error": {"type": 3, "code": 3, "from": "10.1.1.1"}},
        {"error": "fragmentation-needed"},
        {"pause": 1.5},
        {"send": {k: v for k, v in DNS.items() if k != "id"} | {"proto": "tcp", "flags": "SYN,ACK"}},
    ]
    (flow,) = read(DNS | {"then": then})
    reply, named, again, error, needed, pause, send = flow.steps[1:]
    assert reply == Reply()
    assert named == Reply(flags=TcpFlag.SYN | TcpFlag.ACK)
    assert again == Again(flags=TcpFlag(0))
    assert error == IcmpError(type=3, code=3, source=parse_address(Family.IP, "10.1.1.1"))
    assert needed == IcmpError(type=3, code=4)
    assert pause == Pause(seconds=1.5)
    assert isinstance(send, Send)
    assert send.packet.flags == TcpFlag.SYN | TcpFlag.ACK


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dprot": 53}, "unknown key 'dprot'"),
        ({"src": "10.1"}, "'10.1' is not an IP address"),
        ({"src": 5}, "expected an IP address"),
        ({"dst": "::1"}, "different families"),
        ({"proto": "upd"}, "unknown protocol 'upd'"),
        ({"proto": "icmpv6"}, "does not exist in IPv4"),
        ({"dport": 65536}, "65536 is not in 0-65535"),
        ({"dport": "dns"}, "expected a number"),
        ({"dport": True}, "expected a whole number, found true"),
        ({"ttl": 0}, "0 is not in 1-255"),
        ({"mark": 1}, "only packets made on the node carry a mark"),
        ({"in": "eth9"}, "the node has no interface 'eth9'"),
        ({"in": 3}, "expected the name of an interface"),
        ({"id": ""}, "id is missing or empty"),
        ({"why": "\ud800"}, "half a character"),
        ({"payload": "xyz"}, "hexadecimal"),
        ({"bad_checksum": 1}, "expected true or false"),
        ({"flags": "S"}, "unknown key 'flags'"),
        ({"proto": "tcp", "flags": "X"}, "are not TCP flags"),
        ({"icmp": "echo-request"}, "unknown key 'icmp'"),
        ({"fragment": 1}, 'expected {"offset"'),
        ({"fragment": {}}, "it is a whole packet"),
        ({"fragment": {"offset": 8001}}, "8001 is not in 0-8000"),
        ({"fragment": {"more": True, "id": 65536}}, "65536 is not in 0-65535"),
        ({"fragment": {"more": True, "reserved": 1}}, "only the fragment header of IPv6"),
        ({"fragment": {"offset": 5}}, "unknown key 'sport'"),
        ({"fragment": {"more": True}, "in": None}, "the node itself sends no fragments"),
        ({"proto": "tcp", "fragment": {"offset": 1}}, "fragments of TCP at offset 1"),
        ({"truncated": True, "payload": "00" * 8}, "its header has 8 bytes"),
        ({"truncated": True, "proto": "esp"}, "no header of this protocol is known"),
        ({"truncated": True, "payload": "00"}, "unknown key 'sport'"),
        ({"truncated": True, "bad_checksum": True}, "a packet that ends within its transport header cannot"),
        ({"then": {}}, "expected a list"),
        ({"then": ["reply"]}, "expected an object"),
        ({"then": [{}]}, "expected exactly one of"),
        ({"then": [{"reply": {}, "again": {}}]}, "expected exactly one of"),
        ({"then": [{"reply": {"flag": "S"}}]}, "unknown key 'flag'"),
        ({"then": [{"error": "no-such"}]}, "unknown ICMP error 'no-such'"),
        ({"then": [{"error": {}}]}, "expected either kind or type"),
        ({"then": [{"error": {"kind": "port-unreachable", "type": 3}}]}, "expected either kind or type"),
        ({"then": [{"error": {"type": 3, "from": "::1"}}]}, "another address family"),
        ({"then": [{"pause": -1}]}, "not negative"),
        ({"then": [{"send": {"in": None, "src": "1.1.1.1"}}]}, "dst is missing"),
    ],
)
def test_what_is_wrong_is_said(change: dict[str, object], message: str) -> None:
    found = problems(DNS | change)
    assert any(message in p for p in found), found


def test_several_problems_per_run_each_with_its_line_and_column() -> None:
    found = problems(DNS | {"ttl": 999}, DNS | {"id": "b"}, DNS | {"id": "c", "nonsense": 1})
    assert [p.partition(":")[0] for p in found] == ["1", "3"]
    column = json.dumps(DNS | {"ttl": 999}).index('"ttl"') + 1
    assert found[0].startswith(f"1:{column}:")


def test_missing_ports_and_addresses() -> None:
    found = problems({"id": "x", "in": "pod0", "proto": "udp"})
    assert {"1:1: src is missing", "1:1: dst is missing", "1:1: sport is missing"} <= set(found)


def test_twice_the_same_id() -> None:
    assert "already the id of the flow at f.jsonl:1" in problems(DNS, DNS)[0]


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"5", b'{"id": 1, "id": 2}', b"\xff", b'{"id": NaN}', b"[" * 100_000]
)
def test_no_json(text: bytes) -> None:
    with pytest.raises(ParseError):
        read_flows(text, name="f")


def test_blank_lines_mean_nothing() -> None:
    assert read_flows(b"\n \n", name="f") == ()


addresses = st.integers(0x0A000000, 0x0AFFFFFF)
ports = st.integers(0, 65535)
flags = st.integers(0, 63).map(TcpFlag)


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    proto = draw(st.sampled_from([Protocol.UDP, Protocol.TCP, Protocol.ICMP, Protocol.SCTP, 47]))
    fields: dict[str, object] = {}
    if proto in (Protocol.UDP, Protocol.TCP, Protocol.SCTP):
        fields = {"sport": draw(ports), "dport": draw(ports)}
    if proto == Protocol.TCP:
        fields |= {"flags": draw(flags), "seq": draw(st.integers(0, 2**32 - 1))}
    if proto == Protocol.ICMP:
        kind = draw(st.sampled_from([(8, 0), (0, 0), (3, 1), (13, 0), (200, 7)]))
        fields = {"icmp_type": kind[0], "icmp_code": kind[1]}
        if kind[0] in (8, 0, 13):
            fields["icmp_id"] = draw(ports)
    return Packet(
        family=Family.IP,
        src=draw(addresses),
        dst=draw(addresses),
        proto=int(proto),
        ttl=draw(st.integers(1, 255)),
        payload=draw(st.binary(max_size=9)),
        bad_checksum=draw(st.booleans()),
        **fields,  # type: ignore[arg-type]
    )


@st.composite
def flows(draw: st.DrawFn) -> Flow:
    first = Send(packet=draw(packets()), entry=draw(st.sampled_from(["eth0", "pod0", None])))
    step = st.one_of(
        st.builds(Reply, flags=st.none() | flags),
        st.builds(Again, flags=st.none() | flags),
        st.builds(
            IcmpError, type=st.integers(0, 255), code=st.integers(0, 255), source=st.none() | addresses
        ),
        st.builds(Pause, seconds=st.floats(0, 1e6)),
        st.builds(Send, packet=packets(), entry=st.sampled_from(["eth0", None])),
    )
    steps = (first, *draw(st.lists(step, max_size=4)))
    return Flow(id=draw(st.text(min_size=1)), steps=steps, why=draw(st.text()))


@settings(deadline=None)
@given(flows())
def test_reading_what_was_written_gives_it_back(flow: Flow) -> None:
    text = write_flows([flow])
    assert read_flows(text.encode(), name="f", node=NODE) == (flow,)


def test_ipv6() -> None:
    line: dict[str, object] = {
        "id": "six",
        "in": None,
        "src": "fd00::1",
        "dst": "fd00::2",
        "proto": "icmpv6",
        "then": [{"error": "no-route"}],
    }
    (flow,) = read(line, node=None)
    assert flow.first.packet.icmp_type == 128
    assert flow.steps[1] == IcmpError(type=1, code=0)
    assert flow_to_json(flow)["proto"] == "icmpv6"


@pytest.mark.parametrize("proto", [0, 43, 44, 51, 60])
def test_an_extension_header_is_no_protocol(proto: int) -> None:
    """A rule looks for the protocol behind it (ip6_packet_match)."""
    line = {"id": "x", "in": "pod0", "src": "fd00::1", "dst": "fd00::2", "proto": proto}
    with pytest.raises(ParseError, match=f"{proto} is an extension header of IPv6"):
        read(line, node=None)


def test_the_committed_corpus_reads_and_writes_back() -> None:
    cases = sorted((Path(__file__).resolve().parents[4] / "corpus").glob("cases*/*/case.toml"))
    assert cases
    for case in cases:
        node_file = case.parent / tomllib.loads(case.read_text())["node"]
        node = node_from_json(node_file.read_text(), name=node_file.name)
        found = read_flows((case.parent / "flows.jsonl").read_bytes(), name=str(case), node=node)
        assert read_flows(write_flows(found).encode(), name="again", node=node) == found
