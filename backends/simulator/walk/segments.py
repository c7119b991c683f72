"""The MSS option of a SYN, as TCPMSS changes it (``tcpmss_mangle_packet``)."""

from __future__ import annotations

from typing import Final

from backends.model.packet import Packet
from backends.simulator.matching.view import View
from backends.simulator.routing.path import LOOPBACK, NoRoute
from backends.simulator.routing.router import AnyRouter
from translate.dataclass import replace
from translate.ir import Family, Interval, TcpFlag

__all__ = ["MSS_OPTION", "with_segment_size"]

MSS_OPTION: Final = 2
"""The kind of the option."""
_MTU: Final = 1500
"""The MTU of every device of a node under test except lo."""
_LOOPBACK_MTU: Final = 65536
_HEADERS: Final = {Family.IP: 40, Family.IP6: 60}
_DEFAULT_MSS: Final = {Family.IP: 536, Family.IP6: 1220}
"""The segment size that a sender assumes without the option (RFC 9293, 3.7.1)."""


def with_segment_size(view: View, limit: int | None) -> Packet:
    """Return the packet with an MSS of at most ``limit``; None is the path MTU less the headers.

    The path MTU is the smaller one of the routes to the destination and the source (``tcpmss_reverse_mtu``).
    An existing option is lowered but never raised. A missing option is added, unless the segment has data.
    """
    skb = view.skb
    packet = skb.packet
    if not packet.flags & TcpFlag.SYN:
        return packet
    if limit is None:
        loops = skb.path is not None and skb.path.dev == LOOPBACK
        mtu = _LOOPBACK_MTU if loops and _leads_to_loopback(packet, view.router) else _MTU
        limit = mtu - _HEADERS[packet.family]
    if packet.mss is not None:
        return replace(packet, mss=min(packet.mss, limit))
    return packet if packet.payload else replace(packet, mss=min(limit, _DEFAULT_MSS[packet.family]))


def _leads_to_loopback(packet: Packet, router: AnyRouter) -> bool:
    """Return whether a packet to the source would go through ``lo``, or has no route, which sets no limit."""
    if packet.family is Family.IP6 and packet.src in _OF_LINK:
        return False
    path = router.route_output(packet.src)
    return isinstance(path, NoRoute) or path.dev == LOOPBACK


_OF_LINK: Final = Interval(0xFE80 << 112, (0xFEC0 << 112) - 1)
"""The link-local addresses, which have routes through devices alone."""
