"""Random segments of one TCP connection: what fits, what is slightly off, what is far away.

A sequence begins with a handshake that is mostly whole, or with anything. Sequence and acknowledgement
numbers are those that are due, or beside them or beside an edge of the window, or arbitrary.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.model.node import Node, node_from_json
from backends.model.packet import Packet
from backends.simulator import Simulation
from tests.lab.random.played import Played
from translate.ir import Family, Protocol, TcpFlag, parse_address
from translate.read import read_ruleset

__all__ = ["CLIENT", "SERVER", "Segment", "played_segments", "random_segments", "random_settings"]

CLIENT: Final = {Family.IP: "10.1.0.1", Family.IP6: "fd00::1:1"}
SERVER: Final = {Family.IP: "192.0.2.200", Family.IP6: "2001:db8::200"}
_NODES: Final = {
    Family.IP: """{"interfaces": {"eth0": ["192.0.2.2/24"], "pod0": ["10.0.0.1/8"]}}""",
    Family.IP6: """{"interfaces": {"eth0": ["2001:db8::2/64"], "pod0": ["fd00::1/48"]}}""",
}
_STATES: Final = (
    *(
        f"-A PREROUTING -m conntrack --ctstate {state} -j MARK --set-xmark {number}/0xf"
        for number, state in enumerate(("NEW", "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED"), 1)
    ),
    *(
        f"-A FORWARD -m conntrack {words} -j MARK --set-xmark {bit}/{bit}"
        for bit, words in (
            *((0x10, "--ctstatus SEEN_REPLY"), (0x20, "--ctstatus ASSURED")),
            *((0x40, "--ctstatus CONFIRMED"), (0x80, "--ctdir ORIGINAL")),
        )
    ),
)
_BOUNDS: Final = (0, 11, 31, 61, 121, 301, 1 << 32)
"""Between two of them, in seconds, are the timeouts of a few states."""
_TIMERS: Final = tuple(
    f"-A FORWARD -m conntrack --ctstatus CONFIRMED --ctexpire {low}:{above - 1} "
    f"-j MARK --set-xmark {number << 8}/0xf00"
    for number, (low, above) in enumerate(pairwise(_BOUNDS), 1)
)
_SETTINGS: Final = (
    *(("tcp_loose", "0"), ("tcp_be_liberal", "1"), ("tcp_ignore_invalid_rst", "1"), ("checksum", "0")),
    *(("tcp_max_retrans", "1"), ("tcp_timeout_max_retrans", "20")),
)

_FIN, _SYN, _RST, _PSH, _ACK, _URG = 1, 2, 4, 8, 16, 32
_SYNACK, _FINACK = _SYN | _ACK, _FIN | _ACK
_FLAGS: Final = (
    *[_ACK] * 7 + [_ACK | _PSH] * 4 + [_FINACK] * 4 + [_RST] * 3 + [_RST | _ACK] * 4,
    *[_SYN] * 5 + [_SYNACK] * 4 + [_FIN, _SYN | _FIN, _SYN | _RST, 0, _ACK | _URG, _SYN | _URG],
    *(_FINACK | _URG, _RST | _FINACK, _SYNACK | _PSH, _SYN | 0xC0),
)
_HANDSHAKE: Final = ((0, _SYN), (1, _SYNACK), (0, _ACK))
_AGAIN: Final = (*_HANDSHAKE, *_HANDSHAKE, (1, _ACK), (0, _ACK | _PSH), (1, _ACK | _PSH))
"""A second handshake, with which conntrack gets in sync again."""
_OPENINGS: Final = (
    (_AGAIN, 0.12),
    ((*_HANDSHAKE, (1, _FINACK), (0, _ACK), (0, _FINACK), (1, _ACK)), 0.1),
    ((*_HANDSHAKE, (0, _FINACK), (1, _ACK), (1, _FINACK), (0, _ACK)), 0.1),
    (((0, _SYN), (1, _SYN), (0, _SYNACK), (1, _SYNACK), (1, _ACK)), 0.08),
    (((0, _ACK), (1, _ACK), (0, _ACK)), 0.05),
    (_HANDSHAKE, 0.15),
    ((), 0.6),
)
_BESIDE: Final = (-2, -1, 0, 1, 2)
_MSS, _NOP, _SACK_OK = bytes.fromhex("020405b4"), b"\1", bytes.fromhex("0402")
_STAMP: Final = bytes.fromhex("080a0000000100000002")


class Segment(NamedTuple):
    """A segment of the client (direction 0) or of the server (1)."""

    direction: int
    flags: int
    seq: int
    ack: int
    window: int
    options: bytes
    data: bytes
    bad: bool
    """With a wrong checksum."""


def random_segments(draw: random.Random, *, plain: bool) -> list[Segment]:
    """Return a sequence; if it is ``plain``, all windows are equal and an MSS is the only option."""
    return _Artist(draw, plain).sequence()


class _Artist:
    def __init__(self, draw: random.Random, plain: bool) -> None:
        self._draw = draw
        self._plain = plain
        self._first = [draw.choice((draw.randrange(1 << 32), draw.randrange(1, 1 << 32))) for _ in range(2)]
        self._next = list(self._first)
        self._windows = [0, 0]
        self._scales = [0, 0]

    def sequence(self) -> list[Segment]:
        draw = self._draw
        (opening,) = draw.choices(*zip(*_OPENINGS, strict=True))
        opening = opening[: draw.randint(2, len(opening))] if opening else ()
        segments: list[Segment] = []
        for number in range(max(len(opening), draw.randint(2, 8))):
            if number < len(opening):
                direction, flags = opening[number]
                exact = draw.random() < 0.97
            else:
                direction = draw.randrange(2) if number else 0
                flags = draw.choice(_FLAGS) if number or draw.random() < 0.15 else _SYN
                exact = False
            segment = self._segment(direction, flags, exact, opening[:4] == _AGAIN[:4])
            segments += [segment] * draw.choices((1, 2, 6), (90, 9, 1))[0]
        return segments

    def _segment(self, direction: int, flags: int, exact: bool, scaling: bool) -> Segment:
        draw = self._draw
        window = self._windows[1 - direction] << self._scales[1 - direction]
        seq, ack = self._next[direction], self._next[1 - direction]
        if not exact:
            own = self._windows[direction] << self._scales[direction]
            seq = self._number(seq, self._first[direction], (window, -window, 66000))
            ack = self._number(ack, self._first[1 - direction], (-own, -66000, own))
        elif scaling and not flags & _SYN and draw.random() < 0.3:
            seq += window + draw.choice(_BESIDE)
        if not flags & _ACK and draw.random() < 0.7:
            ack = 0
        seq, ack = seq & 0xFFFFFFFF, ack & 0xFFFFFFFF
        if self._plain:
            seq = seq or 1  # a flow takes 0 for a number that it may choose
        data = b""
        if not (exact and flags & _SYN) and draw.random() < 0.35:
            data = bytes(draw.choice((1, 2, 10, 100, 1300)))
        options = self._options(direction, flags, scaling)
        sizes = (64240, 64240, 65535, 0, 1, 10, 1000, 5000, draw.randrange(65536))
        announced = 64240 if self._plain else draw.choice(sizes)
        bad = draw.random() < 0.01
        if not flags & _RST and not bad and draw.random() < 0.92:
            phantom = bool(flags & _SYN) + bool(flags & _FIN)
            self._next[direction] = (seq + len(data) + phantom) & 0xFFFFFFFF
        self._windows[direction] = announced
        return Segment(direction, flags, seq, ack, announced, options, data, bad)

    def _number(self, due: int, first: int, edges: tuple[int, ...]) -> int:
        draw = self._draw
        match draw.choices(range(6), (68, 13, 8, 4, 4, 3))[0]:
            case 1:
                return due + draw.choice((-10, *_BESIDE, 10))
            case 2:
                return due + draw.choice(edges) + draw.choice(_BESIDE)
            case 3:
                return draw.randrange(1 << 32)
            case 4:
                return first + draw.choice((0, 1, 2))
            case 5:
                return 0
            case _:
                return due

    def _options(self, direction: int, flags: int, scaling: bool) -> bytes:
        draw = self._draw
        if self._plain:
            return _MSS if flags & _SYN and draw.random() < 0.4 else b""
        if draw.random() < 0.05:
            return bytes(draw.choice((0, 1, 2, 3, 4, 5, 8, 10, 254)) for _ in range(draw.randrange(40)))
        if flags & _SYN:
            if not scaling and draw.random() < 0.35:
                return b""
            scale = draw.choice((0, 1, 4, 7) if scaling else (0, 2, 7, 14, 15, 255))
            self._scales[direction] = min(scale, 14)
            middle = draw.choice((_SACK_OK + _STAMP, _SACK_OK, b""))
            return _MSS + middle + _NOP + bytes((3, 3, scale))
        if draw.random() < 0.6:
            return b""
        return self._selective(self._next[1 - direction])[:40]

    def _selective(self, due: int) -> bytes:
        """Return a selective acknowledgement, whose length may be wrong, alone or behind other options."""
        draw = self._draw
        ends = [due + draw.choice((0, 1, 10, 1000, -10, 66000)) for _ in range(2 * draw.randint(1, 4))]
        blocks = b"".join((end & 0xFFFFFFFF).to_bytes(4, "big") for end in ends)
        wrong = draw.choice((-2, -1, 1, 2, 4, 8)) if draw.random() < 0.2 else 0
        before = draw.choice((_NOP * 2, _NOP * 2, _NOP * 2 + _STAMP, bytes((5, 10)) + blocks[:8]))
        if draw.random() < 0.1:
            before = bytes((5, 12)) + blocks[:8] + _NOP * 2
        return before + bytes((5, len(blocks) + 2 + wrong)) + blocks


def random_settings(seed: int) -> dict[str, str]:
    """Return the sysctls of a seed: the defaults for even ones."""
    draw = random.Random(f"settings of segments {seed}")
    drawn = [pair for pair in _SETTINGS if draw.random() < 0.4]
    return {f"net.netfilter.nf_conntrack_{name}": value for name, value in drawn} if seed % 2 else {}


def played_segments(seed: int, family: Family, count: int = 500) -> dict[str, Played]:
    """Return random flows of segments with what the simulator says of each, by the name of a backend.

    The marks tell the state, the status and, except in the tc program, the timeout of the connection.
    """
    node = replace(_node(family), sysctls=random_settings(seed))
    flows = list(_flows(seed, family, count))
    timed = _played(seed, family, node, flows, (*_STATES, *_TIMERS))
    return {
        **dict.fromkeys(("iptables-legacy", "iptables-nft", "nftables"), timed),
        "tc-ebpf": _played(seed, family, node, flows, _STATES),
    }


def _node(family: Family) -> Node:
    return node_from_json(_NODES[family], name="the node of random segments")


def _played(seed: int, family: Family, node: Node, flows: list[Flow], rules: tuple[str, ...]) -> Played:
    text = "\n".join(("*mangle", ":PREROUTING ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", *rules, "COMMIT", ""))
    job = Job(rules=read_ruleset(text.encode(), name="segments", family=family), node=node)
    simulation = Simulation(job)
    return Played([(seed, job, [(flow, simulation.simulate(flow)) for flow in flows])])


def _flows(seed: int, family: Family, count: int) -> Iterator[Flow]:
    draw = random.Random(f"segments {seed} {family}")
    ends = [parse_address(family, ends[family]) for ends in (CLIENT, SERVER)]
    for number in range(count):
        ports = (1024 + number, 80)
        steps = tuple(
            Send(
                packet=Packet(
                    family=family,
                    src=ends[segment.direction],
                    dst=ends[1 - segment.direction],
                    proto=Protocol.TCP,
                    sport=ports[segment.direction],
                    dport=ports[1 - segment.direction],
                    flags=TcpFlag(segment.flags),
                    seq=segment.seq,
                    ack=segment.ack,
                    payload=segment.data,
                    mss=1460 if segment.options else None,
                    bad_checksum=segment.bad,
                ),
                entry=("pod0", "eth0")[segment.direction],
            )
            for segment in random_segments(draw, plain=True)
        )
        yield Flow(id=f"segments-{seed}-{number}", steps=steps)
