"""Random flows of several connections between a few hosts, for rules that count, draw or remember."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Again, Flow, IcmpError, Reply, Send, Step
from backends.model.node import Node
from backends.model.outcome import FlowResult, Verdict
from backends.model.packet import Packet
from backends.simulator import Simulation
from harness.corpus.formats.entry import entry_of
from harness.corpus.random.kinds import ICMP
from tests.lab.random.played import Played, node_of
from tests.lab.random.stateful import HOSTS, is_for_tc, stateful_rules
from translate import bpf, nft
from translate.errors import InputError
from translate.ir import Family, Protocol, Ruleset, TcpFlag, parse_address

__all__ = ["played_visits", "random_visits"]

FLOWS: Final = 12
_PORTS: Final = (53, 80)
_SOURCE_PORTS: Final = (1000, 1001, 1002)
_MORE_PORTS: Final = 2000
_TO_A_GROUP: Final = 0x01005E000001
_GROUPED: Final = 0.05
"""The share of packets in frames to a group, which ``-m cluster`` takes for this machine."""
_LENGTHS: Final = (0, 0, 0, 20, 72)


def played_visits(seed: int, family: Family, count: int = FLOWS) -> dict[str, Played]:
    """Return the random rules with states of a seed, with flows, by the name of each backend.

    A translation has the rules that it does not refuse. The tc program has the seeds whose rules it knows.
    """
    node = node_of(family)
    whole = _played(stateful_rules(seed, family), node, seed, count)
    made = {"iptables-legacy": whole, "iptables-nft": whole}
    made["nftables"] = _played(stateful_rules(seed, family, nft.emit), node, seed, count)
    if is_for_tc(seed):
        made["tc-ebpf"] = _played(stateful_rules(seed, family, bpf.emit), node, seed, count)
    return made


def _played(ruleset: Ruleset, node: Node, seed: int, count: int) -> Played:
    job = Job(rules=ruleset, node=node)
    simulation, expected = Simulation(job), []
    for flow in random_visits(node, ruleset.family, seed=seed, count=count):
        with suppress(InputError):  # too many branches
            expected.append(_cut_at_the_stack(flow, simulation))
    return Played([(seed, job, expected)])


def random_visits(node: Node, family: Family, *, seed: int, count: int, steps: int = 8) -> Iterator[Flow]:
    """Draw ``count`` flows of up to ``steps`` packets; the same connections come again and again."""
    draw = random.Random(f"visits {seed} {family.value}")
    for number in range(count):
        packets = [_packet(draw, node, family) for _ in range(draw.randint(1, 3))]
        flow: list[Step] = [draw.choice(packets)]
        for _ in range(draw.randint(2, steps - 1)):
            flow.append(_next(draw, packets, number=len(flow)))
        yield Flow(id=f"visits-{seed}-{number}", steps=tuple(flow))


def _next(draw: random.Random, packets: list[Send], *, number: int) -> Step:
    """Return step ``number`` of a flow. A SYN that comes again begins another connection."""
    roll = draw.random()
    if roll < 0.6:
        sent = draw.choice(packets)
        if sent.packet.proto != Protocol.TCP:
            return sent
        return replace(sent, packet=replace(sent.packet, sport=_MORE_PORTS + number))
    if roll < 0.65:
        kind, code = draw.choice(ICMP[packets[0].packet.family].errors)
        return IcmpError(type=kind, code=code)
    flags = draw.choice((None, None, TcpFlag.RST, TcpFlag.FIN | TcpFlag.ACK))
    return Reply(flags=flags) if roll < 0.85 else Again(flags=flags)


def _cut_at_the_stack(flow: Flow, simulation: Simulation) -> tuple[Flow, FlowResult]:
    """Cut a flow after the first packet that the node's stack answers, and return its expected result.

    No program listens on the node, so a UDP packet that is delivered there causes an ICMP error, which passes
    the rules. On the simulator's node a program listens.
    """
    result = simulation.simulate(flow)
    for number in range(1, len(flow.steps)):
        if any(b.outcomes[number - 1].verdict is Verdict.LOCAL for b in result.branches):
            cut = replace(flow, steps=flow.steps[:number])
            return cut, simulation.simulate(cut)
    return flow, result


def _packet(draw: random.Random, node: Node, family: Family) -> Send:
    hosts = [parse_address(family, host) for host in HOSTS[family]]
    own = [a.value for i in node.interfaces for a in i.addresses if a.family is family]
    src, dst = draw.sample(hosts, 2)
    entry: str | None = entry_of(node, family, src)
    roll = draw.random()
    if roll < 0.1:
        dst = draw.choice(own)
    elif roll < 0.2:
        src, entry = draw.choice(own), None
    proto = draw.choice((Protocol.UDP, Protocol.UDP, Protocol.TCP))
    packet = Packet(
        family=family, src=src, dst=dst, proto=proto,
        sport=draw.choice(_SOURCE_PORTS), dport=draw.choice(_PORTS),
        flags=TcpFlag.SYN if proto is Protocol.TCP else TcpFlag(0),
        payload=bytes(draw.choice(_LENGTHS)) if proto is Protocol.UDP else b"",
        dmac=_TO_A_GROUP if entry is not None and draw.random() < _GROUPED else None,
    )  # fmt: skip
    return Send(packet=packet, entry=entry)
