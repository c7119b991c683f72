"""TCP connection tracking: the state machine and the window check of nf_conntrack_proto_tcp.c.

Segments have no window scaling and no SACK here, and all announce the same window.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from backends.model.packet import Packet
from backends.model.timeouts import Timeouts
from backends.simulator.conntrack.tcp_states import TRANSITIONS, TcpIndex, TcpState, tcp_index
from translate.dataclass import dataclass, field
from translate.ir import TcpFlag

__all__ = ["WINDOW", "TcpTrack", "TcpVerdict"]

WINDOW: Final = 64240
"""The window that every segment announces."""

_MAX_ACK_WINDOW: Final = 66000
# As plain numbers, on which Python's operators are ten times as fast.
_FIN, _SYN, _RST, _ACK = map(int, (TcpFlag.FIN, TcpFlag.SYN, TcpFlag.RST, TcpFlag.ACK))


class TcpVerdict(Enum):
    """The verdict of the tracker on a segment."""

    ACCEPT = "accept"  # part of the connection, whose entry lives on
    IGNORE = "ignore"  # accepted without any effect
    INVALID = "invalid"
    DISTRUST = "distrust"  # invalid, and the entry's timeout shrinks
    REOPEN = "reopen"  # forget the entry and look up the packet again
    KILL = "kill"  # part of the connection, whose entry ends with it


@dataclass(slots=True)
class _Side:
    """The state of one direction of a connection (``struct ip_ct_tcp_state``)."""

    end: int = 0
    maxend: int = 0
    maxwin: int = 0
    maxack: int | None = None
    close_init: bool = False
    liberal: bool = False
    unacknowledged: bool = False

    def copy(self) -> _Side:
        """Return a copy that another run can change."""
        return _Side(
            self.end,
            self.maxend,
            self.maxwin,
            self.maxack,
            self.close_init,
            self.liberal,
            self.unacknowledged,
        )

    def begin(self, packet: Packet) -> None:
        """Begin with the values of a SYN (``tcp_init_sender``), whose options replace all flags but one."""
        self.end = self.maxend = _end(packet)
        self.maxwin = WINDOW
        if packet.mss is not None:
            self.maxack = None
            self.close_init = self.unacknowledged = False

    def reset(self) -> None:
        """Forget the window (``nf_ct_tcp_state_reset``)."""
        self.end = self.maxend = self.maxwin = 0
        self.maxack = None
        self.close_init = self.unacknowledged = False


@dataclass(slots=True)
class TcpTrack:
    """The state of one TCP connection (``struct ip_ct_tcp``)."""

    loose: bool
    liberal: bool
    ignore_invalid_rst: bool = False
    state: TcpState = TcpState.NONE
    seen: tuple[_Side, _Side] = field(default_factory=lambda: (_Side(), _Side()))
    last_dir: int = 0
    last_index: TcpIndex = TcpIndex.NONE
    last_seq: int = 0
    last_ack: int = 0
    last_end: int = 0
    last_win: int = 0
    retransmissions: int = 0
    assured: bool = False
    simultaneous: bool = False
    challenge: bool = False

    def split(self) -> TcpTrack:
        """Return a copy that another run can change."""
        # dataclasses.replace takes five times as long.
        first, second = self.seen
        copy = TcpTrack(
            self.loose, self.liberal, self.ignore_invalid_rst, self.state, (first.copy(), second.copy())
        )
        copy.last_dir, copy.last_index = self.last_dir, self.last_index
        copy.last_seq, copy.last_ack = self.last_seq, self.last_ack
        copy.last_end, copy.last_win = self.last_end, self.last_win
        copy.retransmissions, copy.assured = self.retransmissions, self.assured
        copy.simultaneous, copy.challenge = self.simultaneous, self.challenge
        return copy

    def start(self, packet: Packet) -> bool:
        """Begin with a connection's first segment; return False if it cannot begin one (``tcp_new``)."""
        state = TRANSITIONS[0][tcp_index(packet)][TcpState.NONE]
        if state is TcpState.INVALID:
            return False
        first = _Side(end=_end(packet), maxwin=WINDOW)
        first.maxend = first.end
        second = _Side()
        if state is not TcpState.SYN_SENT:
            if not self.loose:
                return False
            first.maxend += first.maxwin
            first.liberal = second.liberal = True
        self.seen = (first, second)
        self.state = TcpState.NONE
        self.last_index = TcpIndex.NONE
        return True

    def packet(self, packet: Packet, direction: int, *, seen_reply: bool) -> TcpVerdict:
        """Follow one segment (``nf_conntrack_tcp_packet``)."""
        index = tcp_index(packet)
        old = self.state
        new = TRANSITIONS[direction][index][old]
        sender, receiver = self.seen[direction], self.seen[1 - direction]
        check_window = True
        match new:
            case TcpState.INVALID:
                return TcpVerdict.INVALID
            case TcpState.SYN_SENT if old >= TcpState.TIME_WAIT:
                aborted = self.last_dir == direction and self.last_index is TcpIndex.RST
                if sender.close_init or receiver.close_init or aborted:
                    return TcpVerdict.REOPEN
                new, ignored = self._ignore(packet, direction, index, old, new)
                if ignored:
                    return TcpVerdict.IGNORE
            case TcpState.IGNORE:
                new, ignored = self._ignore(packet, direction, index, old, new)
                if ignored:
                    return TcpVerdict.IGNORE
                old = TcpState.SYN_SENT
            case TcpState.TIME_WAIT:
                if (
                    old is TcpState.LAST_ACK
                    and index is TcpIndex.ACK
                    and self.last_dir != direction
                    and self.last_index is TcpIndex.SYN
                    and self.challenge
                ):
                    self.challenge = False
                    return TcpVerdict.IGNORE
            case TcpState.SYN_SENT2:
                self.simultaneous = True
            case TcpState.SYN_RECV:
                if direction == 1 and index is TcpIndex.ACK and self.simultaneous:
                    new = TcpState.ESTABLISHED
            case TcpState.CLOSE if index is TcpIndex.RST:
                verdict, new, check_window = self._reset(packet, direction, old, seen_reply=seen_reply)
                if verdict is not None:
                    return verdict
            case _:
                pass
        if check_window:
            match self._in_window(packet, direction, index):
                case _Window.IGNORE:
                    return TcpVerdict.IGNORE
                case _Window.INVALID:
                    return self._out_of_window(direction, index)
                case _Window.ACCEPT:
                    pass
        self.last_index = index
        self.last_dir = direction
        self.state = new
        if old is not new and new is TcpState.FIN_WAIT:
            sender.close_init = True
        if not seen_reply:
            if int(packet.flags) & _RST:
                return TcpVerdict.KILL
            if index is TcpIndex.SYN and old is TcpState.SYN_SENT:
                return TcpVerdict.IGNORE  # a SYN sent again does not renew the timeout
        elif old in (TcpState.SYN_RECV, TcpState.ESTABLISHED) and new is TcpState.ESTABLISHED:
            self.assured = True
        return TcpVerdict.ACCEPT

    def timeout(self, packet: Packet, timeouts: Timeouts, *, seen_reply: bool) -> int:
        """Return the timeout of the entry after this segment, in seconds (``nf_conntrack_tcp_packet``)."""
        timeout = timeouts.tcp[self.state]
        if self.retransmissions >= timeouts.tcp_max_retrans and timeout > timeouts.tcp_retransmitted:
            timeout = timeouts.tcp_retransmitted
        elif int(packet.flags) & _RST:
            timeout = timeouts.tcp[TcpState.CLOSE]
        elif any(s.unacknowledged for s in self.seen) and timeout > timeouts.tcp_unacknowledged:
            timeout = timeouts.tcp_unacknowledged
        elif self.last_win == 0:
            timeout = min(timeout, timeouts.tcp_retransmitted)
        if not seen_reply and self.state is TcpState.ESTABLISHED:
            timeout = min(timeout, timeouts.tcp_unacknowledged)
        return timeout

    def _ignore(
        self, packet: Packet, direction: int, index: TcpIndex, old: TcpState, new: TcpState
    ) -> tuple[TcpState, bool]:
        """Record a segment that passes because conntrack may be out of sync; False when in sync again."""
        if (
            index is TcpIndex.SYNACK
            and self.last_index is TcpIndex.SYN
            and self.last_dir != direction
            and packet.ack == self.last_end
        ):
            other = self.seen[self.last_dir]
            other.end = other.maxend = self.last_end
            other.maxwin = self.last_win or 1
            other.close_init = other.liberal = other.unacknowledged = False
            other.maxack = None
            self.challenge = False
            self.seen[direction].reset()
            return TcpState.SYN_RECV, False
        self.last_index = index
        self.last_dir = direction
        self.last_seq = packet.seq
        self.last_end = _end(packet)
        self.last_win = WINDOW
        if index is TcpIndex.SYN and direction == 0:
            # Both are bits of last_flags, which has the options of this SYN now.
            self.challenge = old is TcpState.LAST_ACK
            self.simultaneous = False
        if old is TcpState.SYN_SENT and index is TcpIndex.ACK and direction == 1:
            self.last_ack = packet.ack
        return new, True

    def _reset(
        self, packet: Packet, direction: int, old: TcpState, *, seen_reply: bool
    ) -> tuple[TcpVerdict | None, TcpState, bool]:
        """Follow a RST: return a verdict or None, the new state, and whether to check the window."""
        new = TcpState.CLOSE
        closing = (
            TcpState.FIN_WAIT,
            TcpState.LAST_ACK,
            TcpState.TIME_WAIT,
            TcpState.CLOSE,
            TcpState.CLOSE_WAIT,
        )
        if old in closing:
            return None, new, False
        established = old is TcpState.ESTABLISHED and self.assured
        maxack = self.seen[1 - direction].maxack
        if maxack is not None and self.last_index is not TcpIndex.SYN:
            if packet.seq == 0 and not established:
                return None, new, True
            if _before(packet.seq, maxack) and not self.ignore_invalid_rst:
                return TcpVerdict.INVALID, new, False
            if not established or packet.seq == maxack:
                return None, new, True
            if self.last_index is TcpIndex.ACK and self.last_dir == direction and packet.seq == self.last_end:
                return None, new, True
            new = old
        # Older kernels let a RST of the side that sent the SYN pass here, too.
        answers_syn = seen_reply and self.last_index is TcpIndex.SYN and self.last_dir != direction
        answers_ignored = answers_syn or (not self.assured and self.last_index is TcpIndex.ACK)
        if answers_ignored and packet.ack == self.last_end:
            return None, new, False
        if (
            old is TcpState.SYN_SENT
            and self.last_index is TcpIndex.ACK
            and self.last_dir == 1
            and packet.seq == self.last_ack
        ):
            return None, new, False
        return None, new, True

    def _out_of_window(self, direction: int, index: TcpIndex) -> TcpVerdict:
        """Note a FIN or RST outside the window; return DISTRUST for one that answers another.

        Then the connection may have ended without conntrack (``nf_tcp_handle_invalid``, Linux 6.1).
        """
        if not self.assured or index not in (TcpIndex.FIN, TcpIndex.RST):
            return TcpVerdict.INVALID
        if self.last_dir != direction and self.last_index in (TcpIndex.FIN, TcpIndex.RST):
            return TcpVerdict.DISTRUST
        self.last_index = index
        self.last_dir = direction
        return TcpVerdict.INVALID

    def _in_window(self, packet: Packet, direction: int, index: TcpIndex) -> _Window:
        """Return whether a segment fits the windows, and update them (``tcp_in_window``)."""
        sender, receiver = self.seen[direction], self.seen[1 - direction]
        seq, ack, end = packet.seq, packet.ack, _end(packet)
        flags = int(packet.flags)
        syn, has_ack, rst = bool(flags & _SYN), bool(flags & _ACK), bool(flags & _RST)
        if sender.maxwin == 0:
            if syn:
                sender.begin(packet)
                if not has_ack:
                    return _Window.ACCEPT
            else:
                sender.end = end
                sender.maxwin = WINDOW
                sender.maxend = (end + WINDOW) & 0xFFFFFFFF
                if receiver.maxwin == 0:
                    receiver.end = receiver.maxend = ack
                elif ack == (receiver.end + 1) & 0xFFFFFFFF:
                    receiver.end = ack
        elif syn and _before(sender.end, end) and self.state in (TcpState.SYN_SENT, TcpState.SYN_RECV):
            sender.begin(packet)
            if direction == 1 and not has_ack:
                return _Window.ACCEPT
        if not has_ack or (rst and ack == 0):
            ack = receiver.end
        if rst and seq == 0 and self.state is TcpState.SYN_SENT:
            seq = end = sender.end
        liberal = self.liberal or sender.liberal
        in_window = not receiver.maxwin or _before(sender.end - receiver.maxwin - 1, end)
        ack_reach = receiver.end - max(sender.maxwin, _MAX_ACK_WINDOW) - 1
        if not _before(seq, sender.maxend + 1):
            overshot = (end - sender.maxend + 1) & 0xFFFFFFFF
            if (
                receiver.maxwin
                and in_window
                and _before(ack_reach, ack)
                and overshot <= receiver.maxwin
                and _before(ack, receiver.end + 1)
            ):
                sender.end = end
                sender.unacknowledged = True
                return _Window.ACCEPT if liberal else _Window.IGNORE
            return _Window.ACCEPT if liberal else _Window.INVALID
        if not _before(ack, receiver.end + 1):
            return _Window.ACCEPT if liberal else _Window.INVALID
        if not in_window or not _before(ack_reach, ack):
            return _Window.ACCEPT if liberal else _Window.IGNORE
        sender.maxwin = max(sender.maxwin, WINDOW)
        if _before(sender.end, end):
            sender.end = end
            sender.unacknowledged = True
        if has_ack and (sender.maxack is None or _before(sender.maxack, ack)):
            sender.maxack = ack
        if receiver.maxwin and _before(sender.maxend, end):
            receiver.maxwin += (end - sender.maxend) & 0xFFFFFFFF
        if _before(receiver.maxend - 1, ack + WINDOW):
            receiver.maxend = (ack + WINDOW) & 0xFFFFFFFF
        if ack == receiver.end:
            receiver.unacknowledged = False
        if index is TcpIndex.ACK:
            last_segment = (direction, seq, ack, end, WINDOW)
            known = (self.last_dir, self.last_seq, self.last_ack, self.last_end, self.last_win)
            if known == last_segment:
                self.retransmissions = (self.retransmissions + 1) & 0xFF
            else:
                self.last_dir, self.last_seq, self.last_ack, self.last_end, self.last_win = last_segment
                self.retransmissions = 0
        return _Window.ACCEPT


class _Window(Enum):
    """The result of the window check (``enum nf_ct_tcp_action``)."""

    ACCEPT = "accept"
    IGNORE = "ignore"
    INVALID = "invalid"


def _before(a: int, b: int) -> bool:
    """Return whether ``a`` is earlier than ``b`` in sequence space (``before``)."""
    return (a - b) & 0xFFFFFFFF > 0x7FFFFFFF


def _end(packet: Packet) -> int:
    """Return the sequence number after a segment (``segment_seq_plus_len``)."""
    flags = int(packet.flags)
    phantom = bool(flags & _SYN) + bool(flags & _FIN)
    return (packet.seq + len(packet.payload) + phantom) & 0xFFFFFFFF
