"""The node's answers to packets: ICMP errors and RSTs, which pass the hooks as packets of the node."""

from __future__ import annotations

from collections.abc import Callable

from backends.model.outcome import SYN_ACK
from backends.model.packet import Packet
from backends.simulator.conntrack.connection import ORIGINAL, REPLY, ConntrackEntry
from backends.simulator.conntrack.skb import Skb, SocketKind
from backends.simulator.hooks.fate import Delivered, Dropped, Fate, Forwarded, Rejected
from backends.simulator.hooks.reject import (
    checksum_holds,
    icmp_error,
    no_error,
    no_reset,
    reset,
    synack,
    unreachable,
)
from backends.simulator.routing.path import NoRoute, Path
from backends.simulator.routing.router import AnyRouter
from backends.simulator.trace import Answered, Recorder
from translate.dataclass import dataclass
from translate.ir import ConnectionState, RejectKind, TcpFlag

__all__ = ["Answers"]


@dataclass(slots=True)
class Answers:
    """The sender of answers; ``send`` sends a packet of the node and returns its fate.

    ``close`` closes the connection of a packet that was answered with a RST.
    """

    router: AnyRouter
    recorder: Recorder
    send: Callable[[Skb], Fate]
    close: Callable[[ConntrackEntry], None]

    def reject(self, skb: Skb, kind: RejectKind, why: str) -> Fate:
        """Answer a packet that a rule rejects (``REJECT``)."""
        if kind is RejectKind.TCP_RESET:
            return self._reset(skb, why)
        return self._unreachable(skb, kind, why)

    def _unreachable(self, skb: Skb, kind: RejectKind, why: str) -> Fate:
        if not checksum_holds(skb.packet):
            wrong = "it is a later fragment" if skb.packet.is_later_fragment else "its checksum is wrong"
            return self._silent(kind, wrong, why)
        return self.error(skb, *unreachable(skb.packet.family, kind), kind, why)

    def error(self, skb: Skb, icmp_type: int, code: int, kind: RejectKind | str, why: str) -> Fate:
        """Send an ICMP error about the packet to its source (``__icmp_send``)."""
        packet = skb.packet
        assert skb.path is not None
        if (reason := no_error(skb)) is not None:
            return self._silent(kind, reason, why)
        mark = self._answer_mark(skb)
        path = self.router.route_error(packet.src, skb.path, packet.dst, skb.dev, mark)
        if isinstance(path, NoRoute):
            return self._silent(kind, "there is no route back", why)
        error = icmp_error(packet, icmp_type, code, path.source)
        return self._answer(skb, error, path, kind, why, SocketKind.KERNEL)

    def _reset(self, skb: Skb, why: str) -> Fate:
        """Send a RST (``nf_send_reset``)."""
        kind = RejectKind.TCP_RESET
        if (reason := no_reset(skb)) is not None:
            return self._silent(kind, reason, why)
        rst = reset(skb.packet)
        path = self.router.route_reset(rst.dst, rst.src, self._answer_mark(skb))
        if isinstance(path, NoRoute):
            return self._silent(kind, "there is no route back", why)
        if skb.entry is not None:
            self.close(skb.entry)
        return self._answer(skb, rst, path, kind, why)

    def accept(self, skb: Skb, why: str) -> Fate:
        """Answer a SYN with a cookie (``synproxy_send_client_synack``). No flow has an ACK with it."""
        if not skb.packet.flags & TcpFlag.SYN or skb.packet.bad_checksum:
            return Dropped(why)
        answer = synack(skb.packet)
        path = self.router.route_reset(answer.dst, answer.src, 0)
        if isinstance(path, NoRoute):
            return self._silent(SYN_ACK, "there is no route back", why)
        answer_skb = Skb(answer, path=path)
        if skb.entry is not None:
            answer_skb.entry, answer_skb.direction, answer_skb.state = (
                skb.entry,
                REPLY,
                ConnectionState.ESTABLISHED,
            )
        return self._sent_back(answer_skb, SYN_ACK, why)

    def _answer_mark(self, skb: Skb) -> int:
        """Return the mark of an answer to a packet (``IP4_REPLY_MARK``, ``IP6_REPLY_MARK``)."""
        return skb.mark if self.router.reflects_mark else 0

    def _answer(
        self,
        skb: Skb,
        answer: Packet,
        path: Path,
        kind: RejectKind | str,
        why: str,
        socket: SocketKind = SocketKind.NONE,
    ) -> Fate:
        """Send the node's answer to ``skb``, attached to its connection (``nf_ct_attach``).

        Without a connection, conntrack tracks the answer like any other packet; NOTRACK ignores it if ``skb``
        is UNTRACKED.
        """
        untracked = skb.state is ConnectionState.UNTRACKED
        answer_skb = Skb(answer, self._answer_mark(skb), path=path, attached=untracked, socket=socket)
        if skb.entry is not None:
            answer_skb.entry = skb.entry
            answer_skb.direction = REPLY if skb.direction == ORIGINAL else ORIGINAL
            answer_skb.state = ConnectionState.RELATED
        return self._sent_back(answer_skb, kind, why)

    def _sent_back(self, answer: Skb, kind: RejectKind | str, why: str) -> Fate:
        if self.recorder.enabled:
            self.recorder.add(Answered(kind=kind, packet=answer.packet))
        outer, self.recorder.answer = self.recorder.answer, True
        fate = self.send(answer)
        self.recorder.answer = outer
        if isinstance(fate, Forwarded | Delivered):
            return Rejected(str(kind), why)
        return Dropped(f"{why}, and the answer was {fate.why}")

    def _silent(self, kind: RejectKind | str, reason: str, why: str) -> Fate:
        if self.recorder.enabled:
            self.recorder.add(Answered(kind=kind, packet=None, why=reason))
        return Dropped(f"{why}; {reason}")
