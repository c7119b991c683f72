"""The results of a table for random packets: of its rules in the simulator, and of its lowered Program."""

from __future__ import annotations

import dataclasses
import random
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from backends.model.link import neighbour_mac
from backends.model.node import node_from_json
from backends.model.packet import Packet, Tuple
from backends.model.timeouts import timeouts_of
from backends.simulator.chance.chooser import Chooser, branches
from backends.simulator.chance.ports import Ports
from backends.simulator.conntrack.connection import ConntrackEntry
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.table import Conntrack, TrackSettings
from backends.simulator.matching.assumptions import Assumptions
from backends.simulator.matching.connlimits import ConnectionLists
from backends.simulator.matching.hashlimits import HashTables
from backends.simulator.matching.memory import Memory
from backends.simulator.matching.recent import RecentLists
from backends.simulator.matching.view import View
from backends.simulator.routing.router import router_of
from backends.simulator.walk.checkpoint import Checkpoint
from backends.simulator.walk.fast import FastWalk
from backends.simulator.walk.prepare import prepare
from tests.unit.translate.passes.helpers.evaluate import State, run
from translate.ir import (
    TABLE_HOOKS,
    Accept,
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Drop,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    Policy,
    Program,
    Protocol,
    Ruleset,
    TableName,
    TcpFlag,
    qualified,
)

RULESETS = Path(__file__).parents[4] / "corpus/rulesets"
NODE = node_from_json((RULESETS / "kind-node/worker.json").read_text(), name="node")


# Two parts in 2**31 for each equal split on the way, which may be drawn evenly.
BIAS = Fraction(2 * 16, 1 << 31)
_TRACKED = (ConnectionState.NEW, ConnectionState.ESTABLISHED, ConnectionState.RELATED)
_USUAL = {
    Field.L4PROTO: (6, 6, 17, 17, 1, 132),
    Field.DPORT: (53, 80, 443),
    Field.SPORT: (1024, 53, 65535),
    Field.MARK: (0, 0, 1, 0x4000),
    Field.ICMP_TYPE: (8, 0, 3),
    Field.ICMP_CODE: (0, 1),
    Field.TCP_FLAGS: (int(TcpFlag.SYN), int(TcpFlag.ACK)),
    Field.TTL: (1, 63, 64),
    Field.TOS: (0, 0x10, 0xB8),
    Field.ETHER_SADDR: (0x020000000001,),
}


class Rules:
    """A ruleset, made ready for the simulator, and the numbers that it compares fields with."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.ruleset = ruleset
        self.prepared = prepare(ruleset)
        self.constants = constants(ruleset)
        self.rules = [r for t in ruleset.tables for c in t.chains for r in c.rules]


def constants(ruleset: Ruleset) -> dict[Field, list[int]]:
    """Return the numbers that rules compare each field with, and those just beyond them."""
    constants_of_field: dict[Field, set[int]] = {}
    tests = [t for table in ruleset.tables for c in table.chains for r in c.rules for t in r.tests]
    for test in tests:
        for part in test.tests if isinstance(test, AnyOf) else (test,):
            if isinstance(part, FieldTest):
                ends = constants_of_field.setdefault(part.field, set())
                for v in part.values:
                    if isinstance(v, Interval):
                        ends |= {v.low, v.high, v.high + 1}
    return {field: sorted(ends) for field, ends in constants_of_field.items()}


class Draw:
    """Draws packets with their conntrack and routing data, each as a View and as a State.

    Most are drawn to match one rule or another in all that it says of the header.
    """

    def __init__(self, rules: Rules, seed: int) -> None:
        self.family = rules.ruleset.family
        self.random = random.Random(seed)
        self.constants = rules.constants
        self.rules = rules.rules
        self.wanted: dict[Field, int] = {}
        self.router = router_of(NODE, self.family)

    def want(self) -> None:
        """Choose what the next packet should match."""
        self.wanted = {}
        if self.rules and self.random.random() < 0.8:
            for test in self.random.choice(self.rules).tests:
                if isinstance(test, FieldTest) and not test.negated:
                    value = self.random.choice(test.values)
                    if isinstance(value, Interval):
                        self.wanted[test.field] = value.low

    def of(self, field: Field, bits: int) -> int:
        if field in self.wanted:
            return self.wanted[field]
        pool: list[int] = [*self.constants.get(field, ()), *_USUAL.get(field, ())]
        if not pool:
            pool = [0x0AF40003, 0xAC120009, 0xC6336407]
        return self.random.choice(pool) & ((1 << bits) - 1)

    def address(self, side: Field) -> int:
        if side not in self.wanted:
            side = self.random.choice((Field.SADDR, Field.DADDR))
        return self.of(side, self.family.bits)

    def packet(self) -> Packet:
        self.want()
        proto = self.of(Field.L4PROTO, 8)
        if self.family is Family.IP6 and proto == Protocol.ICMP:
            proto = Protocol.ICMPV6
        packet = Packet(
            family=self.family, src=self.address(Field.SADDR), dst=self.address(Field.DADDR), proto=proto
        )
        if packet.has_ports:
            packet = replace(packet, sport=self.of(Field.SPORT, 16), dport=self.of(Field.DPORT, 16))
        if packet.is_icmp:
            packet = replace(
                packet, icmp_type=self.of(Field.ICMP_TYPE, 8), icmp_code=self.of(Field.ICMP_CODE, 8)
            )
        if proto == Protocol.TCP:
            packet = replace(packet, flags=TcpFlag(self.of(Field.TCP_FLAGS, 6)))
        smac = self.of(Field.ETHER_SADDR, 48) if self.random.random() < 0.5 else None
        return replace(packet, ttl=self.of(Field.TTL, 8), tos=self.of(Field.TOS, 8), smac=smac)

    def connection(self, proto: int) -> Tuple:
        return Tuple(
            self.address(Field.SADDR),
            self.address(Field.DADDR),
            proto,
            self.of(Field.SPORT, 16),
            self.of(Field.DPORT, 16),
        )

    def view(self, table: TableName, hook: Hook) -> tuple[View, State]:
        packet, mark = self.packet(), self.of(Field.MARK, 32)
        names = [i.name for i in NODE.interfaces]
        iif = "" if hook is Hook.OUTPUT else self.random.choice([*names, "lo"])
        oif = "" if hook in (Hook.PREROUTING, Hook.INPUT) else self.random.choice([*names, "lo"])
        skb = Skb(packet, mark=mark, dev=iif, link=0 if iif in ("", "lo") else 1 + names.index(iif))
        fields: dict[Field, Any] = {
            Field.SADDR: packet.src,
            Field.DADDR: packet.dst,
            Field.L4PROTO: packet.proto,
            Field.FRAGMENT: 0,
            Field.LENGTH: packet.length,
            Field.TTL: packet.ttl,
            Field.TOS: packet.tos,
            Field.PACKET_TYPE: int(skb.type),
            Field.MARK: mark,
            Field.IIF: iif,
            Field.OIF: oif,
            Field.CT_STATE: int(ConnectionState.INVALID),
            Field.SOCKET: 0,
            Field.TAKER: 0,
            Field.IPSEC_IN: 0,
            Field.IPSEC_OUT: 0,
            Field.BRIDGED: 0,
        }
        if skb.link:
            fields[Field.ETHER_SADDR] = neighbour_mac(skb.link) if packet.smac is None else packet.smac
        if packet.has_ports:
            fields |= {Field.SPORT: packet.sport, Field.DPORT: packet.dport}
        if packet.is_icmp:
            fields |= {Field.ICMP_TYPE: packet.icmp_type, Field.ICMP_CODE: packet.icmp_code}
        if packet.proto == Protocol.TCP:
            fields[Field.TCP_FLAGS] = int(packet.flags)
        if table is not TableName.RAW:
            fields |= self._tracked(skb)
        for side, address in (("SADDR", packet.src), ("DADDR", packet.dst)):
            for suffix, device in (("", None), ("_IIF", iif or None), ("_OIF", oif or None)):
                fields[Field[f"FIB_{side}_TYPE{suffix}"]] = int(self.router.address_type(address, device))
        return View(skb, hook, iif, oif, self.router), State.of(fields)

    def _tracked(self, skb: Skb) -> dict[Field, Any]:
        """Give the packet a connection, or none, and return what rules can ask of that."""
        skb.state = self.random.choice((*_TRACKED, *_TRACKED, *ConnectionState))
        if skb.state not in _TRACKED:
            return {Field.CT_STATE: int(skb.state)}
        proto = skb.packet.proto
        status = sum(int(bit) for bit in ConnectionStatus if self.random.random() < 0.4)
        skb.entry = ConntrackEntry(
            self.connection(proto), self.connection(proto), status, self.of(Field.MARK, 32)
        )
        skb.direction = self.random.randint(0, 1)
        original, reply = skb.entry.original, skb.entry.reply
        return {
            Field.CT_STATE: int(skb.state),
            Field.CT_STATUS: status,
            Field.CT_MARK: skb.entry.mark,
            Field.CT_DIRECTION: skb.direction,
            Field.CT_PROTO: proto,
            Field.CT_ORIGINAL_SADDR: original.src,
            Field.CT_ORIGINAL_DADDR: original.dst,
            Field.CT_ORIGINAL_SPORT: original.sport,
            Field.CT_ORIGINAL_DPORT: original.dport,
            Field.CT_REPLY_SADDR: reply.src,
            Field.CT_REPLY_DADDR: reply.dst,
            Field.CT_REPLY_SPORT: reply.sport,
            Field.CT_REPLY_DPORT: reply.dport,
        }


SETTINGS = TrackSettings(
    checksum=True,
    tcp_loose=True,
    tcp_be_liberal=False,
    tcp_ignore_invalid_rst=False,
    timeouts=timeouts_of(NODE),
)
Ended = tuple[object, object, object, object]
"""The verdict, the mark, the conntrack state and the connection's mark."""


def simulated(rules: Rules, table: TableName, view: View) -> dict[Ended, Fraction]:
    prepared = rules.prepared
    (here,) = (t for t, _ in prepared.at[view.hook] if t.name is table)

    def once(chooser: Chooser[Checkpoint]) -> Ended:
        entry = view.skb.entry and dataclasses.replace(view.skb.entry)
        skb = dataclasses.replace(view.skb, entry=entry)
        memory = Memory(
            chooser,
            Ports(chooser),
            RecentLists(prepared.recent),
            Assumptions(chooser),
            HashTables(prepared.hashed),
            ConnectionLists(Conntrack(SETTINGS, Ports(chooser))),
        )
        decided = FastWalk(memory, chooser).table(here, dataclasses.replace(view, skb=skb))
        return decided, skb.mark, int(skb.ct_state), entry and entry.mark

    total: defaultdict[Ended, Fraction] = defaultdict(Fraction)
    for probability, ended in branches(once):
        total[ended] += probability
    return dict(total)


def evaluated(program: Program, table: TableName, hook: Hook, state: State) -> dict[Ended, Fraction]:
    total: defaultdict[Ended, Fraction] = defaultdict(Fraction)
    names = {chain.name for chain in program.chains}
    base = qualified(table, hook.value)
    endings = run(program, base, state) if base in names else {(None, state): Fraction(1)}
    for (end, after), share in endings.items():
        decided = Drop() if end is Policy.DROP else Accept() if end in (None, Policy.ACCEPT) else end
        marks = after.get(Field.MARK), after.get(Field.CT_STATE), after.get(Field.CT_MARK)
        total[decided, *marks] += share
    return dict(total)


def difference(rules: Rules, program: Program, seed: int) -> tuple[Fraction, str]:
    """The largest difference in the share of one ending, over every base chain and one packet at each."""
    draw, worst = Draw(rules, seed), (Fraction(0), "")
    for table in rules.ruleset.tables:
        for hook in TABLE_HOOKS[table.name]:
            view, state = draw.view(table.name, hook)
            wanted = simulated(rules, table.name, view)
            result = evaluated(program, table.name, hook, state)
            for ended in {*wanted, *result}:
                apart = abs(wanted.get(ended, Fraction(0)) - result.get(ended, Fraction(0)))
                if apart > worst[0]:
                    worst = apart, f"{table.name} {hook}: {ended}: {view.skb}"
    return worst
