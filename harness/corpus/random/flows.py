"""Random flows around the constants of a ruleset and the addresses of a node.

A packet with arbitrary addresses hardly ever matches a rule. These packets mostly use the addresses, ports
and marks of rules and routes, or the values next to them. The same seed, ruleset and node give the same
flows.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, Final

from backends.model.flow import Again, Flow, IcmpError, Reply, Send, Step
from backends.model.node import Node
from backends.model.packet import GRE, TRANSPORT_HEADERS, Packet
from backends.wire.frames import truncated
from harness.corpus.formats.entry import entry_of
from harness.corpus.formats.headers import with_header
from harness.corpus.formats.packets import icmp_has_identifier
from harness.corpus.formats.segments import announced_sizes, announcing
from harness.corpus.random.constants import Constants, Target, constants_of
from harness.corpus.random.kinds import GRE_HEADERS, ICMP, ODD_ADDRESSES, OTHER_PROTOCOLS, is_of_link
from translate.dataclass import dataclass, replace
from translate.ir import PORT_PROTOCOLS, Family, Protocol, Ruleset, TcpFlag

__all__ = ["random_flows"]

_STRANGE_FLAGS: Final = (
    TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.ACK,
    TcpFlag.FIN | TcpFlag.ACK,
    TcpFlag.RST,
    TcpFlag.RST | TcpFlag.ACK,
    TcpFlag.PSH | TcpFlag.ACK,
    TcpFlag.SYN | TcpFlag.FIN,
    TcpFlag.SYN | TcpFlag.URG,
    TcpFlag.FIN,
    TcpFlag(0),
    TcpFlag.FIN | TcpFlag.PSH | TcpFlag.URG,
)
_CONGESTION: Final = (TcpFlag.ECE, TcpFlag.CWR, TcpFlag.ECE | TcpFlag.CWR)
_WHOLE: Final = 0.9
_EPHEMERAL: Final = range(1024, 65536)


def random_flows(
    ruleset: Ruleset, node: Node, *, seed: int, count: int, truncating: bool = False
) -> Iterator[Flow]:
    """Draw ``count`` flows of the ruleset's family. Their ids are ``random-<seed>-<number>``.

    With ``truncating``, one of ten packets that begin a flow ends within its transport header.

    The source ports of most flows repeat only after sixty thousand flows, so that a kernel can replay the
    flows without its connections being deleted in between.
    """
    draw = random.Random(seed)
    encapsulation = random.Random(f"encapsulation {seed}")
    scissors = random.Random(f"truncation {seed}") if truncating else None
    artist = _Artist(draw, encapsulation, scissors, constants_of(ruleset, node), node, ruleset.family)
    sizes = announced_sizes(ruleset)
    for number in range(count):
        artist.sport = _EPHEMERAL[(number * 7919) % len(_EPHEMERAL)]
        flow_id = f"random-{seed}-{number}"
        flow = Flow(id=flow_id, steps=artist.steps(), why="drawn around the constants of the rules")
        yield announcing(flow, sizes, number)


@dataclass(slots=True)
class _Artist:
    draw: random.Random
    encapsulation: random.Random
    """A separate generator for headers in GRE packets, so that the other packets of a seed do not change."""
    scissors: random.Random | None
    """A separate generator for truncated packets; None if none are drawn."""
    constants: Constants
    node: Node
    family: Family
    sport: int = 1024

    def steps(self) -> tuple[Step, ...]:
        """A first packet, and often further steps."""
        first = self._send()
        steps: list[Step] = [first]
        if is_of_link(self.family, first.packet.src):
            return (first,)  # the simulator does not support packets that the node sends to a link
        if self.draw.random() < 0.5:
            for _ in range(self.draw.randint(1, 4)):
                steps.append(self._next(first))
        return tuple(steps)

    def _next(self, first: Send) -> Step:
        roll = self.draw.random()
        if roll < 0.5:
            return Reply(flags=self._odd_flags(first, 0.1))
        if roll < 0.8:
            return Again(flags=self._odd_flags(first, 0.15))
        if roll < 0.92:
            kind, code = self.draw.choice(ICMP[self.family].errors)
            source = None if self.draw.random() < 0.6 else self._address()
            return IcmpError(type=kind, code=code, source=source)
        return self._variation(first)

    def _variation(self, first: Send) -> Send:
        """Return a variant of the first packet, with other addresses, destination port or entry."""
        packet = first.packet
        changes: dict[str, Any] = {}
        if self.draw.random() < 0.5:
            changes["dst"] = self._address()
        if self.draw.random() < 0.3:
            changes["src"] = self._address()
        if packet.has_ports and self.draw.random() < 0.4:
            changes["dport"] = self._port()
        changed = replace(packet, **changes)
        if first.entry is None or changed.dst == 0 or is_of_link(self.family, changed.src):
            able = changed.dst and self._can_send(changed.src, changed.dst)
            return Send(packet=changed if able else packet, entry=first.entry)
        entry = first.entry if self.draw.random() < 0.7 else self._entry(changed.src)
        return Send(packet=changed, entry=entry)

    def _odd_flags(self, first: Send, chance: float) -> TcpFlag | None:
        if first.packet.proto != Protocol.TCP or self.draw.random() >= chance:
            return None
        return self.draw.choice(_STRANGE_FLAGS)

    def _send(self) -> Send:
        made_here = self.draw.random() < 0.25
        own = made_here and self.draw.random() < 0.8
        src = self.draw.choice(self.constants.own) if own else self._address()
        entry = None if made_here else self._entry(src)
        roll = self.draw.random()
        icmp = ICMP[self.family].proto
        proto: int = Protocol.UDP if roll < 0.40 else Protocol.TCP if roll < 0.80 else icmp
        if roll > 0.93:
            proto = self.draw.choice(OTHER_PROTOCOLS[self.family])
        ttl = self.draw.choice((64, 64, 64, 64, 64, 64, 64, 255, 2, 1))
        # With a TTL of 1, the ICMP error would only quote the wrong checksum.
        bad_checksum = ttl > 1 and self.draw.random() < 0.03
        mark = self._mark() if made_here and self.draw.random() < 0.3 else 0
        dst = self._address()
        if made_here and self.draw.random() < 0.2:
            dst = self.draw.choice(self.constants.own)
        while dst == 0 or (made_here and not self._can_send(src, dst)):
            dst, src = self._address(), self._address()
        packet = Packet(
            family=self.family, src=src, dst=dst, proto=proto, ttl=ttl, mark=mark,
            bad_checksum=bad_checksum,
        )  # fmt: skip
        packet = self._transport(packet)
        if self.constants.targets and self.draw.random() < 0.5:
            aimed = self._aimed(packet, self.draw.choice(self.constants.targets))
            if not made_here or self._can_send(aimed.src, aimed.dst):
                packet = aimed
        whole = self._with_headers(self._encapsulating(packet), entry)
        return Send(packet=self._truncated(whole), entry=entry)

    def _truncated(self, packet: Packet) -> Packet:
        """Return the packet, sometimes without the end of its transport header."""
        length = TRANSPORT_HEADERS.get((self.family, packet.proto))
        if self.scissors is None or length is None or packet.fragment is not None:
            return packet
        if self.scissors.random() < _WHOLE:
            return packet
        ends = (0, 2, 4, length - 1, self.scissors.randrange(length))
        return truncated(packet, self.scissors.choice(ends))

    def _encapsulating(self, packet: Packet) -> Packet:
        """Return a GRE packet with a header of its own, and any other packet as it is."""
        if packet.proto != GRE or self.encapsulation.random() < 0.25:
            return packet
        header = self.encapsulation.choice(GRE_HEADERS)
        return replace(packet, payload=header + self.sport.to_bytes(2, "big"))

    def _with_headers(self, packet: Packet, entry: str | None) -> Packet:
        """Set each header field that rules test, with a chance of one in three, to a value from the rules."""
        for field, values in self.constants.headers.items():
            if self.draw.random() < 0.33:
                forwarded = entry is not None and self.draw.random() < 0.5
                value = self.draw.choice(values)
                packet = with_header(packet, field, value, entry, forwarded=forwarded) or packet
        if self.constants.congestion and packet.proto == Protocol.TCP and self.draw.random() < 0.5:
            packet = replace(packet, flags=packet.flags | self.draw.choice(_CONGESTION))
        return packet

    def _can_send(self, src: int, dst: int) -> bool:
        """Return whether a packet made on the node has exactly one outcome, and the simulator supports it."""
        if not self.constants.loud.isdisjoint((src, dst)):
            return False
        return not (is_of_link(self.family, src) or is_of_link(self.family, dst))

    def _aimed(self, packet: Packet, target: Target) -> Packet:
        """Return the packet, changed to match a rule; sometimes a field is left unchanged."""
        known = (Protocol.TCP, Protocol.UDP, *OTHER_PROTOCOLS[self.family])
        if target.proto in known and packet.proto != target.proto:
            ports = (packet.sport, packet.dport) if packet.has_ports else (self.sport, self._port())
            if target.proto not in PORT_PROTOCOLS:
                ports = (None, None)
            packet = Packet(
                family=packet.family, src=packet.src, dst=packet.dst, proto=target.proto,
                ttl=packet.ttl, mark=packet.mark, bad_checksum=packet.bad_checksum,
                sport=ports[0], dport=ports[1],
            )  # fmt: skip
        wanted: dict[str, Any] = {"dst": target.dst, "src": target.src}
        if packet.has_ports:
            wanted |= {"sport": target.sport, "dport": target.dport}
        changes = {k: v for k, v in wanted.items() if v is not None and self.draw.random() < 0.9}
        return replace(packet, **changes)

    def _transport(self, packet: Packet) -> Packet:
        sport = self.sport
        roll = self.draw.random()
        if roll < 0.06:
            sport = self.draw.randint(1, 1023)
        elif roll < 0.10:
            sport = self._port()
        match packet.proto:
            case Protocol.ICMP | Protocol.ICMPV6:
                return self._icmp(packet, sport)
            case Protocol.TCP:
                odd = self.draw.random() < 0.15
                flags = self.draw.choice(_STRANGE_FLAGS) if odd else TcpFlag.SYN
                ack = self.draw.getrandbits(31) if flags & TcpFlag.ACK else 0
                return replace(packet, sport=sport, dport=self._port(), flags=flags, ack=ack)
            case _ if packet.has_ports:
                return replace(packet, sport=sport, dport=self._port())
            case _:
                return packet

    def _icmp(self, packet: Packet, ident: int) -> Packet:
        messages = ICMP[self.family]
        roll = self.draw.random()
        if roll < 0.6:
            kind = self.draw.choice(messages.queries)
            return replace(packet, icmp_type=kind, icmp_code=0, icmp_id=ident)
        if roll < 0.85:
            kind = self.draw.choice(messages.types)
            known = icmp_has_identifier(self.family, kind)
            return replace(packet, icmp_type=kind, icmp_code=0, icmp_id=ident if known else None)
        quoted = Packet(
            family=self.family, src=packet.dst, dst=self._address(), proto=Protocol.UDP,
            sport=self._port(), dport=ident, payload=b"quoted",
        )  # fmt: skip
        return replace(
            packet,
            icmp_type=self.draw.choice(messages.quoting),
            icmp_code=0,
            quoted=quoted,
        )

    def _entry(self, src: int) -> str | None:
        if self.draw.random() < 0.7:
            try:
                entry = entry_of(self.node, self.family, src)
            except ValueError:
                entry = None
            if entry is not None:
                return entry
        return self.draw.choice(self.constants.interfaces)

    def _address(self) -> int:
        roll = self.draw.random()
        if roll < 0.80:
            return self.draw.choice(self.constants.addresses)
        if roll < 0.90:
            return self.draw.choice(self.constants.own)
        if roll < 0.97:
            return self.draw.choice(ODD_ADDRESSES[self.family])
        if self.family is Family.IP6:
            return 0x2 << 124 | self.draw.getrandbits(124)  # 2000::/4, a part of global unicast
        return self.draw.getrandbits(32)

    def _port(self) -> int:
        if self.constants.ports and self.draw.random() < 0.85:
            return self.draw.choice(self.constants.ports)
        return self.draw.randint(1, 65535)

    def _mark(self) -> int:
        if self.constants.marks and self.draw.random() < 0.8:
            return self.draw.choice(self.constants.marks)
        return self.draw.getrandbits(32)
