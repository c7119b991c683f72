"""The proof that a flowtable treats later packets of connections as the rules would, and its refusals.

Packets in a flowtable skip PREROUTING, FORWARD and POSTROUTING (:mod:`translate.nft.limits.laterpackets`).
The flowtable forwards them by the route of the connection's earlier packets, with the connection's NAT. The
rules have the same effect if they accept each of these packets and do nothing else. So the proof walks
through the chains of these hooks with all later packets at once. A rule that one of them can meet must

* have no test that counts, such as ``-m limit`` or ``-m quota``: the packet would be missing there;
* have no action but ACCEPT, RETURN, a jump or a goto.

A packet that reaches the end of a built-in chain must meet the policy ACCEPT. What is uncertain about a test
counts against the proof. So if there is no refusal, all tables accept every later packet unchanged.

The chains of nat are left out of the walk: they see only the first packet of a connection. Conntrack applies
the NAT of the connection to later packets, and so does the flowtable. An INVALID packet belongs to no
connection and gets no NAT. Unless these packets are left out (``unchecked``), all NAT is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from translate.dataclass import dataclass, field
from translate.errors import Refusal
from translate.ir import (
    Accept,
    Account,
    Action,
    AddTtl,
    AnyOf,
    Apply,
    Audit,
    Branch,
    BytecodeTest,
    CgroupTest,
    Choose,
    Classify,
    ClusterShare,
    ConnectionLimit,
    ConnectionState,
    ConnLabel,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    Entry,
    External,
    FieldTest,
    FillChecksum,
    Goto,
    HashLimit,
    HashMark,
    HeaderOptions,
    Hook,
    Jump,
    Limit,
    LimitMss,
    Log,
    LoweredChain,
    Masquerade,
    Netmap,
    NfLog,
    NoTrack,
    Nth,
    Policy,
    Program,
    Proxy,
    Queue,
    Quota,
    Random,
    Recent,
    Redirect,
    Reject,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    Secmark,
    SetConnmark,
    SetMark,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    SetUpdate,
    Snat,
    Statement,
    StripOptions,
    SynProxy,
    TableName,
    Template,
    Test,
    Trace,
    TranslatePrefix,
    WordTest,
    alternatives,
)
from translate.nft.limits.laterpackets import LaterPacket, Truth, all_hold, holds, later_packets
from translate.nft.limits.refusal import CannotSay
from translate.passes.calls import callees_first
from translate.passes.facts import facts_of

__all__ = ["refused_offloads"]

_SKIPPED: Final = (Hook.PREROUTING, Hook.FORWARD, Hook.POSTROUTING)
_NAT: Final = (Dnat, Snat, Masquerade, Redirect, Netmap)


def refused_offloads(
    program: Program, devices: frozenset[str], *, unchecked: bool = False
) -> tuple[Refusal, ...]:
    """Return a refusal for each rule and policy that does not treat later packets as a flowtable does.

    ``devices`` are those of the flowtable. ``unchecked`` is described at
    :func:`~translate.nft.limits.laterpackets.later_packets`.
    """
    chains = {chain.name: chain for chain in program.chains}
    refusals: dict[Refusal, None] = {}
    if not unchecked:
        refusals |= dict.fromkeys(_translations(program))
    for chain in program.chains:
        if chain.hook in _SKIPPED and chain.table is not TableName.NAT:
            for packet in later_packets(chain.hook, chain.table, devices, unchecked=unchecked):
                refusals |= dict.fromkeys(_Walk(chains, packet).base(chain))
    return tuple(refusals)


def _translations(program: Program) -> Iterator[Refusal]:
    """Yield a refusal for each rule that binds a forwarded connection to other addresses or ports."""
    hooks = (Hook.PREROUTING, Hook.POSTROUTING)
    starts = [c for c in program.chains if c.table is TableName.NAT and c.hook in hooks]
    for chain in callees_first(program, starts):
        for statement in chain.statements:
            for each in alternatives(statement):
                if any(isinstance(action, _NAT) for action in each.actions):
                    reason = "NAT does not change packets that conntrack finds INVALID; a flowtable does"
                    yield CannotSay("flowtable-invalid", reason).at(each.origin)


@dataclass(slots=True)
class _Walk:
    """A walk of one kind of packet. ``passing`` has the chains that are done, and whether a packet leaves
    them without a verdict; ``refusals`` are those of their rules.
    """

    chains: dict[str, LoweredChain]
    packet: LaterPacket
    passing: dict[str, bool] = field(default_factory=dict)
    refusals: list[Refusal] = field(default_factory=list)

    def base(self, chain: LoweredChain) -> list[Refusal]:
        """Return the refusals of a base chain and of the chains below it."""
        if self._passes(chain) and chain.policy is Policy.DROP:
            self._refuse(f"the policy of {chain.name.partition('/')[2]} drops", chain)
        return self.refusals

    def _refuse(self, does: str, place: LoweredChain | Apply | Entry | Branch) -> None:
        invalid = self.packet.state is ConnectionState.INVALID
        packets = "a packet that conntrack finds INVALID" if invalid else "a later packet of a connection"
        reason = f"{does} {packets}, which a flowtable forwards unchanged"
        feature = "flowtable-invalid" if invalid else "flowtable"
        self.refusals.append(CannotSay(feature, reason).at(place.origin))

    def _passes(self, chain: LoweredChain) -> bool:
        """Walk through a chain; return whether a packet can leave it without a verdict."""
        if chain.name not in self.passing:
            self.passing[chain.name] = self._walk(chain)
        return self.passing[chain.name]

    def _walk(self, chain: LoweredChain) -> bool:
        returned = False
        for statement in chain.statements:
            continues, returns = self._statement(statement)
            returned |= returns
            if not continues:
                return returned
        return True

    def _statement(self, statement: Statement) -> tuple[bool, bool]:
        """Return whether packets go on after a statement, and whether packets return from its chain."""
        tests = all_hold(self._evaluated(statement.tests, statement), self.packet)
        if tests is Truth.NEVER:
            return True, False
        continues, any_returns = tests is Truth.MAYBE, False
        certain = isinstance(statement, Choose)
        for each in alternatives(statement):
            key = all_hold(facts_of(statement, each), self.packet)
            if key is Truth.NEVER:
                continue
            goes_on, returns = self._actions(each)
            continues |= goes_on
            any_returns |= returns
            certain |= key is Truth.ALWAYS
        return continues or not certain, any_returns

    def _evaluated(self, tests: tuple[Test, ...], statement: Statement) -> Iterator[Test]:
        """Yield the tests that a packet meets, in order, and refuse those that count it."""
        for test in tests:
            if _counts(test):
                for each in alternatives(statement)[:1]:
                    self._refuse("the rule counts", each)
            yield test
            if holds(test, self.packet) is Truth.NEVER:
                return

    def _actions(self, each: Apply | Entry | Branch) -> tuple[bool, bool]:
        """Return whether a packet goes on after actions, and whether it returns from their chain."""
        for action in each.actions:
            match action:
                case Accept():
                    return False, False
                case Return():
                    return False, True
                case Jump(chain=name):
                    return self._passes(self.chains[name]), False
                case Goto(chain=name):
                    return False, self._passes(self.chains[name])
                case _:
                    self._refuse(_doing(action), each)
                    if isinstance(action, Drop | Reject):
                        return False, False
        return True, False


def _counts(test: Test) -> bool:
    """Return whether a test has a state that packets change, or changes the packet or its connection."""
    match test:
        case FieldTest() | AnyOf() | Random() | SetTest() | CgroupTest():
            return False
        case WordTest() | HeaderOptions() | BytecodeTest():
            return False
        case Limit() | HashLimit() | ConnectionLimit() | Quota() | Recent() | Nth() | Account():
            return True
        case SetUpdate() | ClusterShare():
            return True
        case ConnLabel(add=add):
            return add
        case _:
            assert_never(test)


def _doing(action: Action) -> str:
    """Return a description of what an action does to a packet."""
    match action:
        case Drop() | Reject():
            return "the rule drops"
        case SetMark() | HashMark() | RestoreMark() | RestoreSocketMark() | Classify():
            return "the rule marks"
        case SetConnmark() | SaveMark() | NoTrack() | Template():
            return "the rule changes the connection of"
        case SetTos() | SetTtl() | AddTtl() | StripOptions() | LimitMss() | FillChecksum():
            return "the rule changes"
        case SetTcpFlags() | TranslatePrefix():
            return "the rule changes"
        case Log() | NfLog() | Audit() | Trace():
            return "the rule logs"
        case Queue() | Proxy() | SynProxy():
            return "the rule hands over"
        case Duplicate():
            return "the rule duplicates"
        case External() | Secmark() | ConnSecmark():
            return "the rule has an effect outside of the packet filter for"
        case Dnat() | Snat() | Masquerade() | Redirect() | Netmap():
            return "the rule translates"
        case Accept() | Return() | Jump() | Goto():
            raise AssertionError(f"{action} does nothing to a packet")
        case _:
            assert_never(action)
