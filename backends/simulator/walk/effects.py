"""Actions that change a packet or its connection and let the next rule follow."""

from __future__ import annotations

from typing import Final

from backends.simulator.conntrack.connection import ORIGINAL, template_of
from backends.simulator.conntrack.skb import Skb
from backends.simulator.walk.segments import with_segment_size
from translate.ir import (
    Action,
    ConnectionState,
    LimitMss,
    NoTrack,
    RestoreMark,
    SaveMark,
    SetConnmark,
    SetMark,
    SideEffect,
    Template,
)

__all__ = ["EFFECTS", "take_effect"]

EFFECTS: Final = (SetMark, LimitMss, SetConnmark, SaveMark, RestoreMark, NoTrack, Template, SideEffect)
"""The actions after which the next rule follows."""


_UNTRACKED: Final = ConnectionState.UNTRACKED


def take_effect(action: Action, skb: Skb) -> None:
    """Apply one of :data:`EFFECTS`.

    A connection has a mark as soon as a packet has its entry, confirmed or not; a packet without one
    keeps its own (``connmark_tg``).
    """
    entry = skb.entry
    match action:
        case SetMark(value=value, mask=mask):
            skb.mark = skb.mark & ~mask ^ value
        case LimitMss(mss=mss):
            skb.packet = with_segment_size(skb, mss)
        case SetConnmark(value=value, mask=mask) if entry is not None:
            entry.mark = entry.mark & ~mask ^ value
        case SaveMark(nfmask=nfmask, ctmask=ctmask) if entry is not None:
            entry.mark = entry.mark & ~ctmask ^ skb.mark & nfmask
        case RestoreMark(nfmask=nfmask, ctmask=ctmask) if entry is not None:
            skb.mark = skb.mark & ~nfmask ^ entry.mark & ctmask
        case NoTrack() if entry is None and not skb.attached:  # xt_ct_target
            skb.state = ConnectionState.UNTRACKED
        case Template() if entry is None and not skb.attached and skb.state is not _UNTRACKED:
            skb.entry, skb.direction, skb.state = template_of(action), ORIGINAL, ConnectionState.NEW
        case _:
            pass
