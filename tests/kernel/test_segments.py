"""Random segments of TCP connections: what conntrack says of each, on every backend.

The simulator knows one size of windows and no options but the MSS. Segments with other windows, with window
scaling and with selective acknowledgements are sent through iptables-legacy and the tc program, whose tables
of connections are compared, too.
"""

from __future__ import annotations

import random
import re
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import pytest

from backends.iptables.backend import IptablesLoader
from backends.replay.loader import Loader
from backends.replay.worker import Worker
from backends.simulator.conntrack.tcp_states import TcpState
from backends.tc_ebpf import TcEbpfBackend
from backends.tc_ebpf.loader import TcEbpfLoader
from backends.wire.checksums import ones_sum
from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.tcnode import Server, StartWith, node_of
from tests.kernel.helpers.trackedstates import ESTABLISHED, INVALID, NEW, STATE_RULES, tos_of
from tests.lab.random.segments import (
    CLIENT,
    SERVER,
    Segment,
    played_segments,
    random_segments,
    random_settings,
)
from translate.bpf import emit
from translate.bpf.layout.tables import runtime_types
from translate.ir import ConnectionStatus, Family, parse_address
from translate.passes import lower
from translate.read import read_ruleset

SEEDS = (3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 20)))
COUNT = 1_000
WAYS = (("iptables-legacy", 0), ("iptables-nft", 0), ("nftables", 0), ("nftables", 1), ("nftables", 2))
TC_LEVELS = (2, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1)))
SECONDS = 4  # how long it takes to send all packets, and then to read the timeouts


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("seed", SEEDS)
def test_every_backend_tracks_segments_as_simulated(seed: int, family: Family) -> None:
    played = played_segments(seed, family, COUNT)
    for name, level in WAYS:
        tested = backend(name)
        require(tested)
        assert played[name].differences(tested, level) == ([], 0)


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("level", TC_LEVELS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_tc_program_tracks_segments_as_simulated(seed: int, level: int, family: Family) -> None:
    tested = TcEbpfBackend()
    require(tested)
    assert played_segments(seed, family, COUNT)["tc-ebpf"].differences(tested, level) == ([], 0)


RULES = "\n".join((*STATE_RULES, ""))


class Entry(NamedTuple):
    """A connection in a table after all packets."""

    state: TcpState
    seconds: int
    seen_reply: bool
    assured: bool


@dataclass(frozen=True)
class Legacy:
    """Read the kernel's table: the entries by the client's port."""

    def __call__(self, _: Server) -> dict[int, Entry]:
        found = {}
        for line in Path("/proc/self/net/nf_conntrack").read_text().splitlines():
            if (m := re.search(r"tcp +6 (\d+) (\w+) .*?sport=(\d+) dport=(\d+)", line)) is not None:
                port = max(int(m[3]), int(m[4]))
                found[port] = Entry(TcpState[m[2]], int(m[1]), "UNREPLIED" not in line, "ASSURED" in line)
        return found


@dataclass(frozen=True)
class Tc:
    """Read the program's table."""

    family: Family

    def __call__(self, server: Server) -> dict[int, Entry]:
        types = runtime_types(self.family).structures
        within = {d.name: offset for d, offset in types["conn"].offsets}
        ports = [offset for d, offset in types["tuple"].offsets if d.name in ("sport", "dport")]
        now, found = time.clock_gettime(time.CLOCK_MONOTONIC), {}
        for key, value in server.entries("conns"):
            port = max(struct.unpack_from("=H", key, offset)[0] for offset in ports)
            (expires,) = struct.unpack_from("=Q", value, within["expires"])
            (status,) = struct.unpack_from("=I", value, within["status"])
            seen, assured = (
                bool(status & bit) for bit in (ConnectionStatus.SEEN_REPLY, ConnectionStatus.ASSURED)
            )
            state = TcpState(value[within["tcp_state"]])
            found[port] = Entry(state, int(expires / 1e9 - now), seen, assured)
        return found


def packet(family: Family, segment: Segment, number: int) -> bytes:
    """A segment of connection ``number``, which is also in the identification or the flow label."""
    size = family.bits // 8
    ends = [parse_address(family, ends[family]).to_bytes(size, "big") for ends in (CLIENT, SERVER)]
    ports = [1024 + number, 80]
    if segment.direction:
        ends.reverse()
        ports.reverse()
    options = segment.options + bytes(-len(segment.options) % 4)
    header = (20 + len(options)) << 10 | segment.flags
    fields = struct.pack("!HHIIHHHH", *ports, segment.seq, segment.ack, header, segment.window, 0, 0)
    data = fields + options + segment.data
    check = 0xFFFF - ones_sum(b"".join(ends) + struct.pack("!II", len(data), 6) + data) % 0xFFFF
    data = data[:16] + (check ^ (0x55 if segment.bad else 0)).to_bytes(2, "big") + data[18:]
    if family is Family.IP6:
        return struct.pack("!IHBB", 6 << 28 | number, len(data), 6, 64) + b"".join(ends) + data
    start = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(data), number, 0, 64, 6, 0)
    check = 0xFFFF - ones_sum(start + b"".join(ends)) % 0xFFFF
    return start[:10] + check.to_bytes(2, "big") + b"".join(ends) + data


def marked(family: Family, data: bytes) -> tuple[int, int]:
    """The number of a packet that left, and what the rules wrote into its TOS."""
    label, ident = struct.unpack_from("!HH", data, 2)
    return ident if family is Family.IP else label, tos_of(family, data)


def tracked(
    loader: Loader, family: Family, sequences: Sequence[Sequence[Segment]], seed: int
) -> tuple[list[list[int]], dict[int, Entry]]:
    """Return what the rules wrote into each segment, and the table of connections at the end."""
    node = replace(node_of(family), sysctls=random_settings(seed))
    found: list[list[int]] = [[] for _ in sequences]
    with Worker(StartWith(node, loader)) as worker:
        for place in range(max(map(len, sequences))):
            for direction, device in enumerate(("pod0", "eth0")):
                sent = [
                    packet(family, sequence[place], number)
                    for number, sequence in enumerate(sequences)
                    if place < len(sequence) and sequence[place].direction == direction
                ]
                for left in worker.ask(("send", device, sent)):
                    number, tos = marked(family, left)
                    found[number].append(tos)
        read = Tc(family) if isinstance(loader, TcEbpfLoader) else Legacy()
        table: dict[int, Entry] = worker.ask(("run", read))
    return found, table


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("seed", SEEDS)
def test_windows_and_options_are_tracked_as_by_iptables(seed: int, family: Family) -> None:
    require(TcEbpfBackend())
    draw = random.Random(f"windows {seed} {family}")
    sequences = [random_segments(draw, plain=False) for _ in range(4 * COUNT)]
    program = emit(lower(read_ruleset(RULES.encode(), name="rules", family=family), level=2))
    legacy, known = tracked(IptablesLoader("iptables-legacy", RULES, family), family, sequences, seed)
    ours, table = tracked(TcEbpfLoader(program), family, sequences, seed)
    different = [(sequences[n], legacy[n], ours[n]) for n in range(len(sequences)) if legacy[n] != ours[n]]
    assert different == []
    assert [len(found) for found in legacy] == list(map(len, sequences))
    assert {tos >> 2 & 7 for found in legacy for tos in found} == {NEW, ESTABLISHED, INVALID}
    assert len(known) > COUNT
    ended = Entry(TcpState.NONE, 0, False, False)
    for number, sequence in enumerate(sequences):
        entry, own = (t.get(1024 + number, ended) for t in (known, table))
        if max(entry.seconds, own.seconds) > SECONDS:
            assert abs(entry.seconds - own.seconds) <= SECONDS, sequence
            assert own._replace(seconds=0) == entry._replace(seconds=0), sequence
