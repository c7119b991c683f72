"""The path of a packet through the stack: hooks, routing, delivery, and the node's answers.

Follows ip_rcv, ip_forward, ip_local_deliver, ip_output and raw_sendmsg of net/ipv4, and net/ipv6 where it
differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from backends.model.packet import NOT_TAKEN, Icmp6Type, Packet, Routing
from backends.simulator.conntrack.skb import Skb, SocketKind
from backends.simulator.conntrack.table import Conntrack
from backends.simulator.hooks.answers import Answers
from backends.simulator.hooks.fate import Delivered, Dropped, Fate, Forwarded
from backends.simulator.hooks.gathering import Gathering
from backends.simulator.hooks.reject import (
    unreachable,
)
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import View
from backends.simulator.nat.binding import Nat
from backends.simulator.routing.path import LOOPBACK, NoRoute, Path
from backends.simulator.routing.router import AnyRouter
from backends.simulator.trace import HookEntered, Recorder, Routed, Tracked
from backends.simulator.walk.chainmemo import Decision
from backends.simulator.walk.checkpoint import Checkpoint
from backends.simulator.walk.fast import FastWalk
from backends.simulator.walk.plain import PlainWalk
from backends.simulator.walk.prepare import Prepared, PreparedTable
from translate.dataclass import dataclass, field, replace
from translate.ir import (
    CONNTRACK_PRIORITY,
    Accept,
    AddressType,
    ConnectionStatus,
    Dnat,
    Drop,
    Family,
    Hook,
    Masquerade,
    Netmap,
    PacketType,
    Protocol,
    Redirect,
    Reject,
    RejectKind,
    Snat,
    SynProxy,
    TableName,
)

__all__ = ["Stack"]


# Module names, because an attribute of an Enum is looked up each time.
_TRACKING = (Hook.PREROUTING, Hook.OUTPUT)
_GROUP = 0xFF
"""The first byte of a multicast address of IPv6."""
_OUTPUT = Hook.OUTPUT
_WITHOUT_OUT = (Hook.PREROUTING, Hook.INPUT)
_MANGLE, _NAT = TableName.MANGLE, TableName.NAT
_ANSWERS = {
    Family.IP: {
        NoRoute.NET_UNREACHABLE: RejectKind.ICMP_NET_UNREACHABLE,
        NoRoute.HOST_UNREACHABLE: RejectKind.ICMP_HOST_UNREACHABLE,
        NoRoute.PROHIBITED: RejectKind.ICMP_ADMIN_PROHIBITED,
    },
    Family.IP6: {
        NoRoute.NET_UNREACHABLE: RejectKind.ICMP6_NO_ROUTE,
        NoRoute.HOST_UNREACHABLE: RejectKind.ICMP6_NO_ROUTE,
        NoRoute.PROHIBITED: RejectKind.ICMP6_ADM_PROHIBITED,
    },
}
"""The errors about packets that routing refuses (``ip_error``, ``ip6_pkt_discard``, ``ip6_pkt_prohibit``)."""
_NO_ROUTE = {route: route.value for route in NoRoute} | {
    NoRoute.NET_UNREACHABLE: "no route to its destination"
}


def _is_without_type(packet: Packet) -> bool:
    """Return whether a packet is so short that no socket gets it (``icmp_filter``, ``icmpv6_filter``)."""
    if not packet.truncated:
        return False
    return packet.proto == Protocol.ICMP or (
        packet.proto == Protocol.ICMPV6 and len(packet.payload) < _FILTERED
    )


_FILTERED: Final = 4
"""The bytes of an ICMPv6 header that ``icmpv6_filter`` reads."""


@dataclass(slots=True)
class Stack:
    """One node's network stack in one run."""

    prepared: Prepared
    router: AnyRouter
    conntrack: Conntrack
    nat: Nat
    walk: PlainWalk | FastWalk
    recorder: Recorder
    links: Mapping[str, int]
    """The number of each of the node's interfaces, from 1."""
    first: bool = True
    """True for the first packet of the flow."""
    gathering: Gathering = field(default_factory=Gathering)
    _answers: Answers = field(init=False)

    def __post_init__(self) -> None:
        self._answers = Answers(self.router, self.recorder, self._made, self.conntrack.close)

    def begin(self) -> None:
        """Forget all packets, for another run."""
        self.first = True
        self.gathering.waiting.clear()
        self.conntrack.begin()
        self.recorder.begin()

    # Entry

    def receive(self, packet: Packet, dev: str) -> Fate:
        """Receive a packet on ``dev`` (``ip_rcv``)."""
        skb = Skb(replace(packet, mark=0) if packet.mark else packet, dev=dev, link=self.links[dev])
        if packet.dmac is not None and skb.type is PacketType.OTHERHOST:
            return Dropped("its frame is for another host")  # ip_rcv_core
        return self._input(skb)

    def send(self, packet: Packet) -> Fate:
        """Send a packet from the node through a raw socket (``raw_sendmsg``)."""
        skb = Skb(packet, mark=packet.mark, socket=SocketKind.OPENED)
        path = self.router.route_output(packet.dst, mark=skb.mark)
        self._routed("packet made on the node", skb, 0, path)
        if isinstance(path, NoRoute):
            return Dropped(path.value)
        if path.type is AddressType.BROADCAST:
            return Dropped("a socket needs SO_BROADCAST for that")
        if packet.src == 0 and packet.family is Family.IP:
            skb.packet = replace(packet, src=path.source)
        skb.path = path
        return self._made(skb)

    def resume(self, start: Checkpoint) -> Fate:
        """Continue with the first packet of a flow at a checkpoint, in the table of the checkpoint."""
        view, tables = start.view, self.prepared.busy[start.view.hook]
        place = [table for table, _ in tables].index(start.table)
        if (fate := self._nat(start.table, view, start)) is not None:
            return fate
        for table, _ in tables[place + 1 :]:
            if (fate := self._table(table, view)) is not None:
                return fate
        match view.hook:
            case Hook.PREROUTING:
                return self._received(view.skb)
            case Hook.INPUT:
                return self._delivered(view.skb)
            case Hook.FORWARD | Hook.OUTPUT:
                return self._output(view.skb)
            case Hook.POSTROUTING:
                return self._leave(view.skb)

    # The path

    def _input(self, skb: Skb) -> Fate:
        before = skb.packet.dst
        if (why := self.router.not_received(skb.packet.src, before, skb.dev)) is not None:
            return Dropped(why)
        if skb.packet.fragment is not None and self._reassembles():
            return self.gathering.keep(skb.packet)
        if (fate := self._hook(Hook.PREROUTING, skb)) is not None:
            return fate
        if skb.packet.dst != before:
            skb.path = None
        return self._received(skb)

    def _received(self, skb: Skb) -> Fate:
        """Route the packet (``ip_rcv_finish``); a packet that came through ``lo`` may keep its route."""
        if skb.path is None:
            packet = skb.packet
            route = self.router.route_input(packet.src, packet.dst, skb.dev, skb.mark)
            if self.recorder.enabled:
                self._routed("packet that came in", skb, packet.src, route)
            if isinstance(route, NoRoute):
                kind = _ANSWERS[packet.family].get(route)
                if kind is None:
                    return Dropped(route.value)
                # ip_error, ip6_pkt_drop: a packet with such a route may be answered.
                skb.path = Path(type=AddressType.UNREACHABLE, dev=skb.dev)
                fate = self._answers.error(skb, *unreachable(packet.family, kind), kind, _NO_ROUTE[route])
                if isinstance(fate, Dropped) and kind is RejectKind.ICMP_NET_UNREACHABLE:
                    return Dropped(fate.why, kind)
                return fate
            skb.path = route
        if skb.path.local:
            return self._deliver(skb)
        return self._forward(skb)

    def _deliver(self, skb: Skb) -> Fate:
        """Deliver the packet to the node (``ip_local_deliver``)."""
        if skb.packet.fragment is not None and skb.packet.family is Family.IP:
            return self.gathering.keep(skb.packet)
        if (fate := self._hook(Hook.INPUT, skb)) is not None:
            return fate
        return self._delivered(skb)

    def _delivered(self, skb: Skb) -> Fate:
        if not self.conntrack.confirm(skb):
            return Dropped("another connection has the same tuple")
        if skb.packet.routing is not None and (fate := self._beyond(skb, skb.packet.routing)) is not None:
            return fate
        if skb.packet.fragment is not None:
            return self.gathering.keep(skb.packet)
        if _is_without_type(skb.packet):
            return Dropped("it ends within its ICMP header")
        return Delivered(skb.packet, skb.mark)

    def _reassembles(self) -> bool:
        """Return whether the kernel reassembles fragments before the rules. Raises Undecided if unknown."""
        answer = self.prepared.reassembles
        if answer is None:
            raise Undecided("a rule that is not known may make the kernel reassemble fragments")
        return answer

    def _beyond(self, skb: Skb, routing: Routing) -> Fate | None:
        """Return the fate of a packet with a routing header after INPUT (``ipv6_rthdr_rcv``), or None."""
        if skb.type is not PacketType.UNICAST or skb.packet.dst >> 120 == _GROUP:
            return Dropped("it has a routing header and is a broadcast or multicast")
        if routing.type in NOT_TAKEN:
            return Dropped("the node is not configured for this type of routing header")
        if routing.left:
            why = "its routing header has segments left"
            return self._answers.error(skb, Icmp6Type.PARAMETER_PROBLEM, 0, "icmp6-4-0", why)
        return None

    def _forward(self, skb: Skb) -> Fate:
        """Forward the packet (``ip_forward``): the TTL is decremented before the rules see it."""
        packet = skb.packet
        if packet.dmac is not None and skb.type is not PacketType.UNICAST:
            return Dropped("its frame is a broadcast or multicast")
        if packet.ttl <= 1:
            if packet.family is Family.IP6:
                return self._answers.error(skb, 3, 0, "icmp6-3-0", "its hop limit has run out")
            return self._answers.error(skb, 11, 0, "icmp-11-0", "its TTL has run out")
        assert skb.path is not None
        match self.router.stays_on_link(packet.src, skb.dev, skb.path.dev):
            case None:
                pass
            case AddressType.UNICAST:
                return self._answers.error(
                    skb, 1, 2, "icmp6-1-2", "its link-local source must not leave its link"
                )
            case _:
                return Dropped("its source is not the address of a node")
        skb.packet = replace(packet, ttl=packet.ttl - 1)
        if (fate := self._hook(Hook.FORWARD, skb)) is not None:
            return fate
        return self._output(skb)

    def _made(self, skb: Skb) -> Fate:
        """Send a packet that was made on the node (``ip_local_out``)."""
        if (fate := self._hook(Hook.OUTPUT, skb)) is not None:
            return fate
        return self._output(skb)

    def _output(self, skb: Skb) -> Fate:
        """Send the packet (``ip_output``); on ``lo`` it comes in again as the same skb."""
        if (fate := self._hook(Hook.POSTROUTING, skb)) is not None:
            return fate
        return self._leave(skb)

    def _leave(self, skb: Skb) -> Fate:
        if not self.conntrack.confirm(skb):
            return Dropped("another connection has the same tuple")
        assert skb.path is not None
        if skb.path.dev != LOOPBACK:
            return Forwarded(skb.packet, skb.mark, skb.path.dev)
        skb.dev, skb.link = LOOPBACK, 0
        skb.socket = SocketKind.NONE  # loopback_xmit
        return self._input(skb)

    # Hooks

    def _hook(self, hook: Hook, skb: Skb) -> Fate | None:
        """Run the tables and conntrack at a hook; return None if the packet continues."""
        # POSTROUTING has both interfaces since Linux 5.7 (ip_output); a packet made here has no input device.
        iif, oif = skb.dev, "" if skb.path is None or hook in _WITHOUT_OUT else skb.path.dev
        if self.recorder.enabled:
            entered = HookEntered(
                hook=hook, packet=skb.packet, mark=skb.mark, iif=iif, oif=oif, answer=self.recorder.answer
            )
            self.recorder.add(entered)
        tracked = hook not in _TRACKING or not self.prepared.tracked
        view = View(skb, hook, iif, oif, self.router)
        tables = self.prepared.at if self.walk.idle_tables else self.prepared.busy
        for table, priority in tables[hook]:
            if not tracked and priority > CONNTRACK_PRIORITY:
                self._track(hook, skb)
                tracked = True
            if (fate := self._table(table, view)) is not None:
                return fate
        if not tracked:
            self._track(hook, skb)
        return None

    def _track(self, hook: Hook, skb: Skb) -> None:
        if skb.packet.fragment is not None:
            return  # no rule uses conntrack, or the fragment would not be here
        self.conntrack.track(skb, incoming=hook is Hook.PREROUTING)
        if self.recorder.enabled:
            entry = skb.entry
            self.recorder.add(
                Tracked(
                    state=skb.ct_state,
                    original=entry.original if entry else None,
                    reply=entry.reply if entry else None,
                    status=ConnectionStatus(entry.status if entry else 0),
                    direction=skb.direction,
                )
            )

    def _table(self, table: PreparedTable, view: View) -> Fate | None:
        if table.name is _NAT:
            return self._nat(table, view)
        skb = view.skb
        before = skb.route_key() if view.hook is _OUTPUT else None
        decision = self.walk.table(table, view)
        match decision:
            case Accept():
                pass
            case Drop():
                return Dropped(f"dropped in table {table.name}, {view.hook}")
            case Reject():
                return self._answers.reject(
                    skb, decision.kind, f"rejected in table {table.name}, {view.hook}"
                )
            case SynProxy():
                return self._answers.accept(skb, f"taken by SYNPROXY in table {table.name}, {view.hook}")
            case Dnat() | Snat() | Masquerade() | Redirect() | Netmap():
                raise AssertionError(decision)  # the reader keeps NAT targets in the nat table
        if before is not None and table.name is _MANGLE and before != skb.route_key():
            return self._reroute(skb, "mangle OUTPUT changed the packet")
        return None

    def _nat(self, table: PreparedTable, view: View, start: Checkpoint | None = None) -> Fate | None:
        skb, hook = view.skb, view.hook
        if skb.packet.fragment is not None:
            return None  # without conntrack no packet comes to the rules (nf_nat_inet_fn)
        if self.nat.asks(hook, skb):
            decision = self._decide_nat(table, view, start)
            match decision:
                case Drop():
                    return Dropped(f"dropped in table nat, {hook}")
                case Reject():
                    return self._answers.reject(skb, decision.kind, f"rejected in table nat, {hook}")
                case SynProxy():
                    return self._answers.accept(skb, f"taken by SYNPROXY in table nat, {hook}")
                case _:
                    passed = self.nat.bind(hook, skb, view.oif, decision)
        else:
            passed = self.nat.follow(hook, skb, view.oif)
        if not passed:
            return Dropped(f"dropped in table nat, {hook}")
        if hook is _OUTPUT and skb.entry is not None:
            # nf_nat_ipv4_local_fn
            own_tuple, reply_tuple = skb.entry.tuple(skb.direction), skb.entry.tuple(1 - skb.direction)
            if own_tuple.dst != reply_tuple.src:
                return self._reroute(skb, "NAT changed the destination")
        return None

    def _decide_nat(self, table: PreparedTable, view: View, start: Checkpoint | None) -> Decision:
        """Walk the nat table, from a checkpoint if there is one."""
        if isinstance(self.walk, PlainWalk):
            return self.walk.table(table, view)
        return self.walk.table(table, view, self._is_young) if start is None else self.walk.resume(start)

    def _is_young(self) -> bool:
        """Return whether the run has no state except the packet and its connection, so it can be split."""
        return self.first and not self.recorder.answer and self.conntrack.is_empty()

    def _reroute(self, skb: Skb, why: str) -> Fate | None:
        """Route the packet again (``ip_route_me_harder``); return its fate if it has no route."""
        packet = skb.packet
        assert skb.path is not None
        route = self.router.reroute(packet.dst, packet.src, skb.path.dev, skb.mark)
        self._routed(why, skb, self.router.source_for_rerouting(packet.src), route)
        if isinstance(route, NoRoute):
            return Dropped(route.value)
        skb.path = route
        return None

    def _routed(self, why: str, skb: Skb, src: int, route: Path | NoRoute) -> None:
        """Record a routing decision for a packet, made with ``src`` as its source."""
        if self.recorder.enabled:
            dst = skb.packet.dst
            rule = self.router.deciding_rule(dst, src, skb.mark, skb.dev or LOOPBACK)
            self.recorder.add(Routed(why, dst, route, rule))
