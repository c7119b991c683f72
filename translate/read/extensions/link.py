"""``-m mac`` and ``-m pkttype``: the frame in which a packet came in."""

from __future__ import annotations

import re
from typing import Final

from translate.ir import Field, FieldTest, Hook, Interval, PacketType, Test
from translate.read.extensions.declaration import Context, MatchExtension, Options, OptionSpec
from translate.read.spelling.errors import OptionError

__all__ = ["MAC", "PKTTYPE"]

_BYTES: Final = re.compile(r"[0-9a-fA-F]{0,2}(:[0-9a-fA-F]{0,2}){5}")
_TYPES: Final = {
    **{kind.name.lower(): kind for kind in PacketType},
    "bcast": PacketType.BROADCAST,
    "mcast": PacketType.MULTICAST,
    "host": PacketType.UNICAST,
}


def _mac(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--mac-source", "mac")
    text = option.arguments[0]
    if not _BYTES.fullmatch(text):  # xtopt_parse_ethermac: a byte without digits is 0
        raise OptionError(f'"{text}" is not a hardware address', option=index, hint="like 02:00:00:00:01:01")
    value = int("".join(byte.zfill(2) for byte in text.split(":")), 16)
    return (FieldTest(field=Field.ETHER_SADDR, values=(Interval.point(value),), negated=option.negated),)


def _pkttype(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--pkt-type", "pkttype")
    kind = _TYPES.get(option.arguments[0].lower())
    if kind is None:
        names = ", ".join(kind.name.lower() for kind in PacketType)
        message = f'"{option.arguments[0]}" is not a packet type'
        raise OptionError(message, option=index, hint=f"known are {names}")
    value = (Interval.point(int(kind)),)
    return (FieldTest(field=Field.PACKET_TYPE, values=value, negated=option.negated),)


MAC: Final = MatchExtension(
    name="mac",
    options=(OptionSpec(name="--mac-source", invertible=True),),
    meaning=_mac,
    hooks=frozenset({Hook.PREROUTING, Hook.INPUT, Hook.FORWARD}),
)
"""``-m mac`` (``xt_mac``): false, negated or not, of packets that did not come in by Ethernet."""

PKTTYPE: Final = MatchExtension(
    name="pkttype", options=(OptionSpec(name="--pkt-type", invertible=True),), meaning=_pkttype
)
"""``-m pkttype`` (``xt_pkttype``)."""
