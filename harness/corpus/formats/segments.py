"""The MSS option in the SYNs of generated flows, for rules that change it (``-j TCPMSS``).

Senders announce an MSS in every SYN (RFC 9293, 3.7.1). Without the option TCPMSS adds one, which no
translation can do.
"""

from __future__ import annotations

from backends.model.flow import Flow, Send, Step
from backends.model.packet import Packet
from translate.dataclass import replace
from translate.ir import Family, LimitMss, Protocol, Ruleset, TcpFlag

__all__ = ["announced_sizes", "announcing"]

_LARGE = 9000
_PATH = {Family.IP: 1460, Family.IP6: 1440}
"""The segment size for an MTU of 1500."""


def announced_sizes(ruleset: Ruleset) -> tuple[int, ...]:
    """Return sizes above, at and just beyond each limit that the rules set; empty if they set none."""
    limits = {
        _PATH[ruleset.family] if action.mss is None else action.mss
        for table in ruleset.tables
        for chain in table.chains
        for rule in chain.rules
        for action in rule.actions
        if isinstance(action, LimitMss)
    }
    if not limits:
        return ()
    near = {size for limit in limits for size in (limit - 1, limit, limit + 1) if 0 <= size <= 65535}
    return (_LARGE, *sorted(near - {_LARGE}))


def announcing(flow: Flow, sizes: tuple[int, ...], turn: int) -> Flow:
    """Return the flow with an MSS in each SYN that has none.

    The MSS values are ``sizes`` in rotation, beginning at index ``turn``.
    """
    if not sizes:
        return flow
    steps: list[Step] = []
    for number, step in enumerate(flow.steps):
        if isinstance(step, Send) and _lacks_mss(step.packet):
            size = sizes[(turn + number) % len(sizes)]
            steps.append(Send(packet=replace(step.packet, mss=size), entry=step.entry))
        else:
            steps.append(step)
    return Flow(id=flow.id, steps=tuple(steps), why=flow.why, source=flow.source)


def _lacks_mss(packet: Packet) -> bool:
    """Return whether the packet is a SYN without an MSS."""
    bare = packet.proto != Protocol.TCP or packet.is_headless
    return not bare and bool(packet.flags & TcpFlag.SYN) and packet.mss is None
