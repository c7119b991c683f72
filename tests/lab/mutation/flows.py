"""Flows that show faults in the translation of one rule, beside those of ``corpus generate``.

A corpus for a user's rules has a few flows for each rule. Here each flow of it is varied in one field at a
time: to the ends of what a rule tests and just beyond them, to each bit of it, to another protocol with the
same bytes behind the IP header, and to another interface. Random flows come last. Flows that the simulator
cannot predict are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, filterfalse
from typing import Any, Final

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Reply, Send, Step
from backends.model.node import Node
from backends.model.outcome import FlowResult, Verdict
from backends.model.packet import GRE, Fragment, Packet
from backends.simulator import SimulatorBackend
from backends.wire.frames import build
from harness.corpus.formats.headers import HEADER_FIELDS, with_header
from harness.corpus.formats.packets import icmp_has_identifier
from harness.corpus.random.flows import random_flows
from tests.lab.mutation.plain_flows import (
    COUNTING,
    IDENTIFIER,
    plain_flows,
    sequences_between_hosts,
    special_flows,
)
from translate.errors import UnsupportedError
from translate.ir import (
    INDEX_PROTOCOLS,
    ConnectionLimit,
    Family,
    Field,
    FieldTest,
    Interval,
    Protocol,
    Ruleset,
    TcpFlag,
    field_bits,
    flat,
)

__all__ = ["further_flows"]

_BASES: Final = 6
"""The number of generated flows that are varied."""
_RANDOM: Final = 120
_WIDE: Final = 8
"""Fields of so many bits get a flow for each value."""

_USUAL_OFFSET: Final = 185
_HIGH_OFFSET: Final = 4096
"""An offset with the highest bit of those in the header of IPv4 alone."""

_ESP, _AH, _IPCOMP = INDEX_PROTOCOLS.values()
_PROTOCOLS: Final = (
    *(Protocol.TCP, Protocol.UDP, Protocol.UDPLITE, Protocol.SCTP),
    *(GRE, _ESP, _AH, 99, _IPCOMP, 129, 134, 145, 186),
)
"""Protocols with ports, with headers of their own, with neither, and usual ones with the highest bit set."""
_PORTED: Final = frozenset({Protocol.TCP, Protocol.UDP, Protocol.UDPLITE, Protocol.SCTP})
_FULL: Final = 0x20010DB8FFFFFFFF << 64 | 7
"""An address with most bits set, for what would be read of the header of IPv6 instead of a later one."""
_PLAIN: Final[dict[str, Any]] = dict.fromkeys(
    ("sport", "dport", "mss", "icmp_type", "icmp_code", "icmp_id", "quoted")
)
"""Fields of a transport header, for a packet that has none."""

_ADDRESSES: Final = {
    Field.SADDR: "src",
    Field.DADDR: "dst",
    Field.CT_ORIGINAL_SADDR: "src",
    Field.CT_ORIGINAL_DADDR: "dst",
    Field.CT_REPLY_SADDR: "dst",
    Field.CT_REPLY_DADDR: "src",
}
_PORTS: Final = {
    Field.SPORT: "sport",
    Field.DPORT: "dport",
    Field.CT_ORIGINAL_SPORT: "sport",
    Field.CT_ORIGINAL_DPORT: "dport",
    Field.CT_REPLY_SPORT: "dport",
    Field.CT_REPLY_DPORT: "sport",
}
_OF_ICMP: Final = {Field.ICMP_TYPE: "icmp_type", Field.ICMP_CODE: "icmp_code"}
_NOBODY: Final = 0xFFFFFFFF
"""The number that is no user's and no group's (``INVALID_UID``)."""
_OF_SENDER: Final = {Field.SOCKET_UID: "uid", Field.SOCKET_GID: "gid"}
_EVERY_VALUE: Final = {
    "-j TTL": (Field.TTL,),
    "-j HL": (Field.TTL,),
    "-j TOS": (Field.TOS,),
    "-j DSCP": (Field.TOS,),
    "-j ECN": (Field.TOS, Field.TCP_FLAGS),
    "-j SYNPROXY": (Field.TCP_FLAGS,),
    "-m u32": (Field.ICMP_TYPE, Field.ICMP_CODE),
}
"""Fields of which every value is tried: a target changes each by a rule of its own, ``u32`` tests bits."""
_READS_WHOLE: Final = frozenset({Field.TAKER, Field.TAKER_WILDCARD, Field.TAKER_TRANSPARENT})


def further_flows(extension: str, ruleset: Ruleset, node: Node, generated: Sequence[Flow]) -> Iterator[Flow]:
    """Yield flows of a ruleset with one rule of ``extension``, which vary those that were ``generated``."""
    if extension == "-m statistic":
        return  # its flows are repeated instead
    tests = [test for rule in ruleset.rules() for test in flat(rule.tests) if isinstance(test, FieldTest)]
    tracked = any(test.field.text.startswith("ct.") for test in tests)
    bases = (*_bases(generated), *plain_flows(node, ruleset.family))
    varied: Iterable[Flow] = chain.from_iterable(
        _varied(flow, extension, tests, node, tracked=tracked) for flow in bases
    )
    fragments: Iterable[Flow] = ()
    if not any(test.field in _READS_WHOLE for test in tests):
        fragments = _later_fragments(generated)  # iptables reassembles because of -m socket
    special = special_flows(ruleset, node)
    counting = [t for rule in ruleset.rules() for t in rule.tests if isinstance(t, COUNTING)]
    sequences = sequences_between_hosts(
        ruleset, node, connections=any(isinstance(t, ConnectionLimit) for t in counting)
    )
    drawn = random_flows(ruleset, node, seed=0, count=_RANDOM)
    flows = chain(special, sequences if counting else (), fragments, varied, drawn)
    kept = filterfalse(_gets_mss, flows) if extension == "-j TCPMSS" else flows
    yield from _predictable(kept, Job(rules=ruleset, node=node))


def _gets_mss(flow: Flow) -> bool:
    """Return whether a flow has a SYN without an MSS, which only iptables' TCPMSS gives one."""
    sent = (step.packet for step in flow.steps if isinstance(step, Send))
    return any(p.proto == Protocol.TCP and p.mss is None and TcpFlag.SYN in p.flags for p in sent)


def _bases(generated: Sequence[Flow]) -> Sequence[Flow]:
    """Return some of the generated flows, evenly spread, each with another first packet."""
    firsts = {(flow.first.packet, flow.first.entry): flow for flow in generated}
    flows = list(firsts.values())
    every = -(-len(flows) // _BASES)
    return flows[:: max(every, 1)]


def _predictable(flows: Iterable[Flow], job: Job) -> Iterator[Flow]:
    """Yield the flows with outcomes that the reference knows, each packet and its further steps once."""
    sent: set[tuple[Step, ...]] = set()
    # The node itself also receives what it sends to these: one packet, two outcomes.
    broadcast = {a.network.high for i in job.node.interfaces for a in i.addresses}
    with SimulatorBackend().open(job) as session:
        for flow in flows:
            if flow.steps in sent or (len(flow.steps) > 1 and flow.first.packet.src in broadcast):
                continue
            sent.add(flow.steps)
            try:
                (result,) = session.replay([flow])
                build(flow.first.packet)
            except (UnsupportedError, ValueError, AssertionError):
                continue
            if not result.guessed and not result.is_open and not _has_error(result):
                yield flow


def _has_error(result: FlowResult) -> bool:
    """Return whether the node answers a packet with an ICMP error of its own, whose rate is limited."""
    outcomes = (outcome for branch in result.branches for outcome in branch.outcomes)
    return any(outcome.verdict is Verdict.REJECT for outcome in outcomes)


def _later_fragments(flows: Iterable[Flow]) -> Iterator[Flow]:
    """Return later fragments whose data begins with the transport header of each flow's first packet."""
    for flow in flows:
        packet, entry = flow.first.packet, flow.first.entry
        if entry is None or packet.is_later_fragment or packet.destination_options is not None:
            continue
        data = _behind_ip(packet)
        bare = replace(packet, **_PLAIN, routing=None, hop_options=None, payload=data)
        for offset in (_USUAL_OFFSET, _HIGH_OFFSET):
            later = replace(bare, fragment=Fragment(offset))
            yield Flow(id=f"{flow.id}-later-{offset}", steps=(Send(packet=later, entry=entry),))
        if packet.family is Family.IP6:
            later = replace(bare, fragment=Fragment(_USUAL_OFFSET), src=_FULL)
            yield Flow(id=f"{flow.id}-later-full", steps=(Send(packet=later, entry=entry),))


def _behind_ip(packet: Packet) -> bytes:
    whole = replace(packet, routing=None, hop_options=None, destination_options=None, fragment=None)
    return build(whole)[20 if packet.family is Family.IP else 40 :]


def _varied(
    flow: Flow, extension: str, tests: Sequence[FieldTest], node: Node, *, tracked: bool
) -> Iterator[Flow]:
    first, rest = flow.steps[0], flow.steps[1:]
    assert isinstance(first, Send)
    packets = dict.fromkeys(_packets(first, extension, tests))
    sends = [Send(packet=packet, entry=first.entry) for packet in packets]
    sends += [Send(packet=first.packet, entry=entry) for entry in (*_entries(node), None)]
    tails: list[tuple[Step, ...]] = [rest] if rest else [()]
    if tracked:
        tails += [(Reply(), Again())]
    for number, send in enumerate(sends):
        for tail in tails:
            yield replace(flow, id=f"{flow.id}-varied-{number}-{len(tail)}", steps=(send, *tail))


def _entries(node: Node) -> Iterator[str]:
    return (interface.name for interface in node.interfaces)


def _packets(first: Send, extension: str, tests: Iterable[FieldTest]) -> Iterator[Packet]:
    """Yield variations of a packet in one field each."""
    packet = first.packet
    yield from _of_protocols(packet)
    yield replace(packet, src=packet.dst, dst=packet.src)
    if packet.proto == Protocol.TCP and packet.has_ports:
        yield from (replace(packet, flags=packet.flags ^ TcpFlag(1 << bit)) for bit in range(8))
    for field in _EVERY_VALUE.get(extension, ()):
        yield from _with_values(first, field, range(256))
    for test in tests:
        yield from _with_values(first, test.field, _values(test, packet.family))


def _of_protocols(packet: Packet) -> Iterator[Packet]:
    """Yield packets of other protocols with the same bytes behind the IP header, or the same ports."""
    if packet.is_later_fragment:
        return
    data = _behind_ip(packet).ljust(_LEAST, b"\0")
    for proto in _PROTOCOLS:
        if packet.family is Family.IP6 and proto == _AH:
            continue  # an extension header, which these bytes do not make
        changes: dict[str, Any] = {"proto": int(proto)}
        if proto not in _PORTED:
            changes |= _PLAIN | {"payload": data}
        elif packet.has_ports:
            changes |= {"mss": packet.mss if proto == packet.proto else None}
        else:
            changes |= _PLAIN | {"sport": int.from_bytes(data[:2]), "dport": int.from_bytes(data[2:4])}
        yield replace(packet, **changes)


_LEAST: Final = 20
"""Bytes of data that are enough for the header of any protocol."""


def _values(test: FieldTest, family: Family) -> Iterable[int]:
    """Return the values around those of a test: the ends of ranges, their neighbours, and each other bit."""
    bits = max(field_bits(test.field, family), 1)
    most = (1 << bits) - 1
    if bits <= _WIDE:
        return range(most + 1)
    values = {0, 1, most - 1, most}
    for interval in test.values:
        if isinstance(interval, Interval):
            values |= {interval.low - 1, interval.low, interval.high, interval.high + 1}
            values |= {interval.low ^ 1 << bit for bit in _telling_bits(interval, bits)}
    return sorted(value for value in values if 0 <= value <= most)


def _with(packet: Packet, name: str, value: int) -> Packet:
    fields: dict[str, Any] = {name: value}
    return replace(packet, **fields)


def _telling_bits(interval: Interval, bits: int) -> Iterable[int]:
    """Return the bits of a value to flip: all of a number, those around the end of a prefix of an address."""
    if bits <= _NUMBER:
        return range(bits)
    host = interval.size.bit_length() - 1
    return {bit for bit in (0, 1, host - 1, host, host + 1) if 0 <= bit < bits}


_NUMBER: Final = 16


def _with_values(first: Send, field: Field, values: Iterable[int]) -> Iterator[Packet]:
    """Yield the packet with other values of a field, as far as a sender can give it these."""
    packet = first.packet
    for value in values:
        if name := _ADDRESSES.get(field):
            yield _with(packet, name, value)
        elif name := _PORTS.get(field):
            if packet.has_ports:
                yield _with(packet, name, value)
        elif name := _OF_ICMP.get(field):
            if packet.is_icmp and packet.quoted is None:
                other = _with(packet, name, value)
                assert other.icmp_type is not None
                known = icmp_has_identifier(other.family, other.icmp_type)
                yield replace(other, icmp_id=(other.icmp_id or IDENTIFIER) if known else None)
        elif name := _OF_SENDER.get(field):
            if first.entry is None and value < _NOBODY:
                yield _with(packet, name, value)
        elif field is Field.MARK:
            if first.entry is None:
                yield replace(packet, mark=value)
        elif field is Field.TCP_FLAGS:
            if packet.proto == Protocol.TCP and packet.has_ports:
                yield replace(packet, flags=TcpFlag(value))
        elif field in HEADER_FIELDS:
            for forwarded in (False, True):
                changed = with_header(packet, field, value, first.entry, forwarded=forwarded)
                if changed is not None:
                    yield changed
