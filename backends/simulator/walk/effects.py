"""Actions that change a packet or its connection and let the next rule follow."""

from __future__ import annotations

from typing import Final

from backends.simulator.conntrack.connection import ORIGINAL, template_of
from backends.simulator.conntrack.skb import Skb
from backends.simulator.matching.view import HotDrop, View
from backends.simulator.walk.hashmarks import hash_mark
from backends.simulator.walk.prefixes import with_prefix
from backends.simulator.walk.segments import MSS_OPTION, with_segment_size
from translate.dataclass import replace
from translate.ir import (
    Action,
    AddTtl,
    ConnectionState,
    HashMark,
    LimitMss,
    NoTrack,
    Protocol,
    RestoreMark,
    RestoreSocketMark,
    SaveMark,
    SetConnmark,
    SetMark,
    SetTcpFlags,
    SetTos,
    SetTtl,
    SideEffect,
    StripOptions,
    TcpFlag,
    Template,
    TranslatePrefix,
)

__all__ = ["EFFECTS", "take_effect"]

EFFECTS: Final = (
    *(SetMark, HashMark, LimitMss, StripOptions, SetTos, SetTcpFlags, TranslatePrefix, SetTtl, AddTtl),
    *(SetConnmark, SaveMark, RestoreMark, RestoreSocketMark, NoTrack, Template, SideEffect),
)
"""The actions after which the next rule follows."""


_UNTRACKED: Final = ConnectionState.UNTRACKED
_MOST_TTL: Final = 0xFF
_MARK: Final = 0xFFFFFFFF


def take_effect(action: Action, view: View) -> None:
    """Apply one of :data:`EFFECTS`.

    Raises HotDrop for a change of a header that is not whole, and Undecided for what the kernel chooses.

    An unconfirmed connection has a mark, too. A packet without a connection keeps its own mark
    (``connmark_tg``).
    """
    skb = view.skb
    entry = skb.entry
    match action:
        case SetMark(value=value, mask=mask):
            skb.mark = skb.mark & ~mask ^ value
        case HashMark():
            skb.mark = skb.mark if (mark := hash_mark(action, skb)) is None else mark
        case LimitMss() | StripOptions() | SetTcpFlags() if skb.packet.truncated:
            raise HotDrop  # tcpmss_mangle_packet, tcpoptstrip_mangle_packet, set_ect_tcp: not enough header
        case LimitMss(mss=mss) if not skb.packet.is_later_fragment:
            skb.packet = with_segment_size(view, mss)
        case StripOptions(options=options) if MSS_OPTION in options and skb.packet.mss is not None:
            skb.packet = replace(skb.packet, mss=None)
            skb.stripped = True
        case SetConnmark(value=value, mask=mask, shift=shift) if entry is not None:
            entry.mark = _shifted(entry.mark & ~mask ^ value, shift)
        case SaveMark(nfmask=nfmask, ctmask=ctmask, shift=shift) if entry is not None:
            entry.mark = entry.mark & ~ctmask ^ _shifted(skb.mark & nfmask, shift)
        case RestoreMark(nfmask=nfmask, ctmask=ctmask, shift=shift) if entry is not None:
            skb.mark = skb.mark & ~nfmask ^ _shifted(entry.mark & ctmask, shift)
        case SetTos(value=value, mask=mask):
            skb.packet = replace(skb.packet, tos=skb.packet.tos & ~mask ^ value)
        case TranslatePrefix():
            skb.packet = with_prefix(skb.packet, action)
        case SetTcpFlags(value=value, mask=mask) if _is_segment(skb):
            skb.packet = replace(skb.packet, flags=TcpFlag(int(skb.packet.flags) & ~mask ^ value))
        case SetTtl(value=value):
            skb.packet = replace(skb.packet, ttl=value)
        case AddTtl(number=number):
            skb.packet = replace(skb.packet, ttl=min(max(skb.packet.ttl + number, 0), _MOST_TTL))
        case NoTrack() if entry is None and not skb.attached:  # xt_ct_target
            skb.state = ConnectionState.UNTRACKED
        case Template() if entry is None and not skb.attached and skb.state is not _UNTRACKED:
            skb.entry, skb.direction, skb.state = template_of(action), ORIGINAL, ConnectionState.NEW
        case _:
            pass


def _is_segment(skb: Skb) -> bool:
    """Return whether the packet has a header of TCP; ECN changes data of later fragments (docs/limits.md)."""
    return skb.packet.proto == Protocol.TCP and not skb.packet.is_later_fragment


def _shifted(mark: int, shift: int) -> int:
    """Return a mark shifted to the left, or to the right by a negative number (``connmark_tg_shift``)."""
    return mark << shift & _MARK if shift >= 0 else mark >> -shift
