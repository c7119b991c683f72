"""Bindings of NAT, made by the first packet of a connection, and the rewriting of every packet by them.

Follows nf_nat_core.c (``nf_nat_inet_fn``, ``nf_nat_setup_info``, ``get_unique_tuple``),
nf_nat_proto.c (``nf_nat_icmp_reply_translation``), nf_nat_masquerade.c and nf_nat_redirect.c.
"""

from __future__ import annotations

from backends.model.packet import Port, Tuple
from backends.simulator.chance.ports import PickedPort, Ports
from backends.simulator.conntrack.connection import DNAT, ORIGINAL, SNAT, ConntrackEntry
from backends.simulator.conntrack.skb import Skb
from backends.simulator.conntrack.table import Conntrack
from backends.simulator.conntrack.tuples import (
    ICMP6_REDIRECT,
    can_be_rewritten,
    invert,
    rewrite_destination,
    rewrite_source,
)
from backends.simulator.nat.ranges import NatRange, shifted_port, with_address
from backends.simulator.nat.takenports import closed_connections, ports_in_use
from backends.simulator.routing.router import AnyRouter
from backends.simulator.trace import Bound, Manip, Recorder, Rewritten
from translate.dataclass import dataclass, replace
from translate.ir import (
    PORT_PROTOCOLS,
    Accept,
    ConnectionState,
    Dnat,
    Family,
    Hook,
    Interval,
    Masquerade,
    NatPorts,
    Netmap,
    Protocol,
    Redirect,
    Snat,
)

__all__ = ["Nat", "NatAction"]

NatAction = Dnat | Snat | Masquerade | Redirect | Netmap

# Module names, because an attribute of an Enum is looked up each time.
_SOURCE, _DESTINATION = Manip.SOURCE, Manip.DESTINATION
_SOURCE_HOOKS = (Hook.POSTROUTING, Hook.INPUT)
_RELATED = ConnectionState.RELATED
_UNBOUND = (ConnectionState.NEW, _RELATED)
_NAT = SNAT | DNAT
_LOCALHOST = {Family.IP: 0x7F000001, Family.IP6: 1}
_ICMP = (Protocol.ICMP, Protocol.ICMPV6)
_IDENTIFIERS = Interval(0, 65535)
_NO_PORTS = NatPorts()
_NARROW = 64
"""The size of a range, in ports, from which a pick counts as different from the packet's present port."""
_FEW = 32
"""The number of ports, at the end of a search, for which connections are ended (NF_NAT_HARDER_THRESH)."""


@dataclass(slots=True)
class Nat:
    """The NAT engine over one connection table."""

    conntrack: Conntrack
    router: AnyRouter
    ports: Ports
    recorder: Recorder
    family: Family = Family.IP

    def asks(self, hook: Hook, skb: Skb) -> bool:
        """Return whether the nat table is walked for a packet at this hook (``nf_nat_inet_fn``).

        That is so only for the first packet of a connection, once for each side.
        """
        entry = skb.entry
        if entry is None or skb.state not in _UNBOUND or (skb.state is _RELATED and skb.packet.is_icmp):
            return False
        return not (entry.source_done if _manip(hook) is _SOURCE else entry.destination_done)

    def bind(self, hook: Hook, skb: Skb, out: str, decided: NatAction | Accept) -> bool:
        """Apply the decision of the nat table to a packet; return False if the packet is dropped.

        Accept leaves the address unchanged.
        """
        entry, manip = skb.entry, _manip(hook)
        assert entry is not None
        if isinstance(decided, Accept):
            self._bind_nothing(hook, entry, manip)
        elif not self._bind(hook, skb, entry, out, manip, decided):
            return False
        return self._rewrite(hook, skb, entry, manip)

    def follow(self, hook: Hook, skb: Skb, out: str) -> bool:
        """Apply the binding to a packet without a walk of the table; return False if it is dropped."""
        entry = skb.entry
        if entry is None:
            return True
        if skb.state is _RELATED and skb.packet.is_icmp:
            return self._translate_error(hook, skb, entry)
        of_original = hook is Hook.POSTROUTING and skb.direction == ORIGINAL
        if of_original and entry.masquerade_out not in (None, out):
            # nf_nat_oif_changed: the output device is another one, so the masquerade no longer holds.
            self.conntrack.kill(entry)
            return False
        return self._rewrite(hook, skb, entry, _manip(hook))

    # Binding

    def _bind(
        self, hook: Hook, skb: Skb, entry: ConntrackEntry, out: str, manip: Manip, action: NatAction
    ) -> bool:
        match action:
            case Dnat():
                wanted = NatRange(action.addresses, action.ports)
            case Snat():
                wanted = NatRange(action.addresses, action.ports)
            case Netmap():
                packet = skb.packet
                address = packet.src if manip is _SOURCE else packet.dst
                mapped = address & ~action.mask | action.network
                wanted = NatRange(Interval.point(mapped), _NO_PORTS)
            case Redirect():
                packet = skb.packet
                address = _LOCALHOST[packet.family]
                if hook is not Hook.OUTPUT:
                    address = self.router.redirect_address(skb.dev, packet.dst)
                if not address:
                    return False
                wanted = NatRange(Interval.point(address), action.ports)
            case Masquerade():
                four = skb.packet.family is Family.IP
                if four and entry.original.src == 0:
                    self._bind_nothing(hook, entry, manip)
                    return True
                assert skb.path is not None
                # The next hop's neighbour in IPv4, the destination's in IPv6.
                via = skb.packet.dst if skb.path.via is None or not four else skb.path.via
                address = self.router.select_address(out, via)
                if not address:
                    return False
                entry.masquerade_out = out
                wanted = NatRange(Interval.point(address), action.ports)
        self._setup(hook, entry, manip, wanted, null=False)
        return True

    def _bind_nothing(self, hook: Hook, entry: ConntrackEntry, manip: Manip) -> None:
        """Bind without a rule: keep the address, change a port in use (``nf_nat_alloc_null_binding``)."""
        if entry.confirmed:
            return
        if self.conntrack.taken(entry.reply, entry):
            address = entry.reply.dst if manip is _SOURCE else entry.reply.src
            self._setup(hook, entry, manip, NatRange(Interval.point(address), _NO_PORTS), null=True)
        else:
            self._bound(hook, entry, manip, null=True)

    def _setup(
        self, hook: Hook, entry: ConntrackEntry, manip: Manip, wanted: NatRange, *, null: bool
    ) -> None:
        """Bind one side of a connection to a range (``nf_nat_setup_info``)."""
        if entry.confirmed:
            return
        current = invert(entry.reply)
        assert current is not None
        chosen = self._unique(current, wanted, entry, manip)
        if chosen != current and not self._is_same(chosen, current):
            reply = invert(chosen)
            assert reply is not None
            entry.reply = reply
            entry.status |= SNAT if manip is _SOURCE else DNAT
        self._bound(hook, entry, manip, null=null)

    def _is_same(self, chosen: Tuple, current: Tuple) -> bool:
        """Return whether NAT changes nothing, because a port from a narrow range equals the present port.

        A port picked from a wide range counts as different: it hardly ever is equal, and the possibility
        would double the branches of most flows.
        """
        if chosen.src != current.src or chosen.dst != current.dst:
            return False
        for port in (chosen.sport, chosen.dport):
            if isinstance(port, PickedPort) and port.high - port.low >= _NARROW:
                return False
        return self.ports.equal(chosen.sport, current.sport) and self.ports.equal(chosen.dport, current.dport)

    def _bound(self, hook: Hook, entry: ConntrackEntry, manip: Manip, *, null: bool) -> None:
        if manip is _SOURCE:
            entry.source_done = True
            self.conntrack.by_source.insert(0, entry)
        else:
            entry.destination_done = True
        if self.recorder.enabled:
            self.recorder.add(
                Bound(hook=hook, manip=manip, original=entry.original, reply=entry.reply, null=null)
            )

    # get_unique_tuple

    def _unique(self, original: Tuple, wanted: NatRange, entry: ConntrackEntry, manip: Manip) -> Tuple:
        if manip is _SOURCE and not wanted.random:
            if self._in_range(original, wanted):
                if not self._used_unchanged(original, entry):
                    return original
            else:
                same = self._same_source(original, wanted, entry)
                if same is not None and not self._used(same, entry):
                    return same
        chosen = with_address(original, wanted, manip, self.family, zone=entry.zone.number)
        ports = wanted.ports.interval
        if manip is _DESTINATION and ports is not None and ports.is_point and _has_plain_port(chosen):
            # A single port is used whether it is free or not.
            return Tuple(chosen.src, chosen.dst, chosen.proto, chosen.sport, ports.low)
        if not wanted.random and wanted.ports.base is None:
            if ports is None:
                if not self._used(chosen, entry):
                    return chosen
            elif self._port_in(chosen, manip, ports) and (ports.is_point or not self._used(chosen, entry)):
                return chosen
        return self._pick(chosen, wanted, entry, manip)

    def _used(self, t: Tuple, entry: ConntrackEntry) -> bool:
        """Return whether another connection uses the tuple (``nf_nat_used_tuple``)."""
        reply = invert(t)
        assert reply is not None
        return self.conntrack.taken(reply, entry)

    def _used_unchanged(self, t: Tuple, entry: ConntrackEntry) -> bool:
        """Return whether the tuple, which NAT has not changed, is used (``nf_nat_used_tuple_new``).

        Two UDP packets in opposite directions at the same time make two connections. NAT keeps the second as
        it is, and leaves the clash to the confirmation.
        """
        reply = invert(t)
        assert reply is not None
        if not self.conntrack.taken(reply, entry):
            return False
        if t.proto != Protocol.UDP:
            return True
        known = self.conntrack.find(t, entry.zone) or self.conntrack.find(reply, entry.zone)
        return known is not None and (
            bool(known[0].status & (SNAT | DNAT)) or known[0].original != entry.reply
        )

    def _in_range(self, t: Tuple, wanted: NatRange) -> bool:
        """Return whether a source is in the range (``in_range``)."""
        if wanted.addresses is not None and t.src not in wanted.addresses:
            return False
        ports = wanted.ports.interval
        return ports is None or self._port_in(t, Manip.SOURCE, ports)

    def _port_in(self, t: Tuple, manip: Manip, ports: Interval) -> bool:
        """Return whether a port is in the range (``l4proto_in_range``)."""
        if t.proto not in _ICMP and t.proto not in PORT_PROTOCOLS:
            return True
        source = manip is _SOURCE or t.proto in _ICMP
        return self.ports.within(t.sport if source else t.dport, (ports,))

    def _same_source(self, original: Tuple, wanted: NatRange, entry: ConntrackEntry) -> Tuple | None:
        """Return the mapping of another connection from the same source (``find_appropriate_src``)."""
        for other in self.conntrack.by_source:
            o = other.original
            if other is entry or other.zone.of(ORIGINAL) != entry.zone.of(ORIGINAL):
                continue
            if (o.proto, o.src, o.sport) != (original.proto, original.src, original.sport):
                continue
            mapped = invert(other.reply)
            assert mapped is not None
            result = Tuple(mapped.src, original.dst, mapped.proto, mapped.sport, original.dport)
            if self._in_range(result, wanted):
                return result
        return None

    def _pick(self, t: Tuple, wanted: NatRange, entry: ConntrackEntry, manip: Manip) -> Tuple:
        """Return the tuple with a port that no connection uses (``nf_nat_l4proto_unique_tuple``)."""
        ports = wanted.ports.interval
        if t.proto in _ICMP:
            return self._with_pick(t, ports or _IDENTIFIERS, wanted, entry, source=True, manip=manip)
        if t.proto not in PORT_PROTOCOLS:
            return t
        source = manip is _SOURCE
        if ports is None:
            if not source:
                return t
            ports = self._class(t.sport)
        return self._with_pick(t, ports, wanted, entry, source=source, manip=manip)

    def _class(self, port: Port) -> Interval:
        if self.ports.within(port, (Interval(0, 511),)):
            return Interval(1, 511)
        if self.ports.within(port, (Interval(512, 1023),)):
            return Interval(600, 1023)
        return Interval(1024, 65535)

    def _with_pick(
        self,
        t: Tuple,
        ports: Interval,
        wanted: NatRange,
        entry: ConntrackEntry,
        *,
        source: bool,
        manip: Manip,
    ) -> Tuple:
        reply = invert(t)
        assert reply is not None
        # In the reply a source port is the destination port (an identifier has the same place).
        in_reply_source = not source or t.proto in _ICMP
        closed = []
        if ports.size <= _FEW:
            closed = closed_connections(self.conntrack, reply, entry, source=in_reply_source)
        if closed and not self.ports.guess():
            closed = []
        but = [known for _, known in closed]
        taken = ports_in_use(self.conntrack, reply, entry, source=in_reply_source, but=but)
        port = None
        if wanted.ports.base is not None:
            port = shifted_port(t.sport if source else t.dport, ports, wanted.ports.base, taken)
        if port is None:
            # Since Linux 6.8 a destination gets the first free port, unless a random one is requested.
            drawn = manip is _SOURCE or wanted.random
            port = self.ports.pick(ports.low, ports.high, taken, drawn=drawn)
        for other, known in closed:
            if self.ports.equal(port, other):
                self.conntrack.kill(known)
        if source:
            return Tuple(t.src, t.dst, t.proto, port, t.dport)
        return Tuple(t.src, t.dst, t.proto, t.sport, port)

    # Rewriting

    def _rewrite(self, hook: Hook, skb: Skb, entry: ConntrackEntry, manip: Manip) -> bool:
        """Rewrite a packet by its binding (``nf_nat_packet``); return False if it is dropped."""
        if not entry.status & _NAT or not _applies(entry, manip, skb.direction):
            return True
        if not can_be_rewritten(skb.packet, source=manip is _SOURCE):
            return False
        target = invert(entry.reply if skb.direction == ORIGINAL else entry.original)
        assert target is not None
        before = skb.packet
        rewrite = rewrite_source if manip is _SOURCE else rewrite_destination
        skb.packet = rewrite(before, target)
        if self.recorder.enabled and skb.packet != before:
            self.recorder.add(Rewritten(hook=hook, before=before, after=skb.packet))
        return True

    def _translate_error(self, hook: Hook, skb: Skb, entry: ConntrackEntry) -> bool:
        """Translate an ICMP error and the quoted packet (``nf_nat_icmp_reply_translation``)."""
        packet = skb.packet
        if packet.bad_checksum:
            return False
        if packet.icmp_type == (5 if packet.proto == Protocol.ICMP else ICMP6_REDIRECT):
            bound = entry.source_done and entry.destination_done
            if not bound or entry.status & (SNAT | DNAT):
                return False
        manip = _manip(hook)
        if not _applies(entry, manip, skb.direction):
            return True
        reply_tuple = entry.tuple(1 - skb.direction)
        inverted = invert(reply_tuple)
        assert inverted is not None
        assert packet.quoted is not None
        if not can_be_rewritten(packet.quoted, source=manip is not _SOURCE):
            return False
        if manip is _SOURCE:
            inner = rewrite_destination(packet.quoted, reply_tuple)
            skb.packet = replace(packet, src=inverted.src, quoted=inner)
        else:
            inner = rewrite_source(packet.quoted, reply_tuple)
            skb.packet = replace(packet, dst=inverted.dst, quoted=inner)
        if self.recorder.enabled and skb.packet != packet:
            self.recorder.add(Rewritten(hook=hook, before=packet, after=skb.packet))
        return True


def _manip(hook: Hook) -> Manip:
    """Return the side that NAT changes at a hook (``HOOK2MANIP``)."""
    return _SOURCE if hook in _SOURCE_HOOKS else _DESTINATION


def _has_plain_port(t: Tuple) -> bool:
    """Return whether the destination has a port that the kernel did not pick."""
    return t.proto in PORT_PROTOCOLS and isinstance(t.dport, int)


def _applies(entry: ConntrackEntry, manip: Manip, direction: int) -> bool:
    source = (manip is _SOURCE) == (direction == ORIGINAL)
    return bool(entry.status & (SNAT if source else DNAT))
