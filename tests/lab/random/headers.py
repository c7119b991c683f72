"""Random matches of the header and the frame, around values that random packets have."""

from __future__ import annotations

import random
from typing import Final

from translate.ir import Family

__all__ = ["header_match", "header_target"]

_WITH_FRAME: Final = frozenset({"PREROUTING", "INPUT", "FORWARD"})
_LENGTHS: Final = ("40", "36", "20:40", "60:", ":40", "56:1000", "0:65535", "200:100", "48")
_TTLS: Final = ("eq 64", "eq 63", "lt 63", "gt 63", "lt 64", "gt 64", "eq 255", "lt 2", "gt 0", "lt 0")
_DSCPS: Final = ("0", "0x2e", "0x08", "0x3f", "1")
_TOSES: Final = ("0", "0x10/0x3f", "0xb8", "0/0x03", "2/3", "0x08/0x1c", "0xff", "0/0", "0x11/0x10")
_MACS: Final = ("02:00:00:00:02:01", "02:00:00:00:02:02", "02:00:00:00:00:99")
_TYPES: Final = ("unicast", "broadcast", "multicast", "otherhost")


def header_match(draw: random.Random, family: Family, chain: str) -> str:
    """Return a match that may stand in ``chain``."""
    no = "! " if draw.random() < 0.3 else ""
    name = "ttl" if family is Family.IP else "hl"
    way, value = draw.choice(_TTLS).split()
    found = [
        f"length {no}--length {draw.choice(_LENGTHS)}",
        f"{name} {no if way == 'eq' else ''}--{name}-{way} {value}",
        f"dscp {no}--dscp {draw.choice(_DSCPS)}",
        f"tos {no}--tos {draw.choice(_TOSES)}",
        f"pkttype {no}--pkt-type {draw.choice(_TYPES)}",
    ]
    if chain in _WITH_FRAME:
        found.append(f"mac {no}--mac-source {draw.choice(_MACS)}")
    return f"-m {draw.choice(found)}"


_SET_TOS: Final = ("0x10", "0xb8/0xff", "0x10/0x3f", "4/0x1c", "0/0", "0x11/0x10", "2/3", "1/2", "0/0x3f")


def header_target(draw: random.Random, family: Family) -> str:
    """Return a target of the mangle table that changes a header."""
    name = "ttl" if family is Family.IP else "hl"
    way = draw.choice(("set", "set", "inc", "dec"))
    found = (
        f"DSCP --set-dscp {draw.choice(_DSCPS)}",
        f"TOS --set-tos {draw.choice(_SET_TOS)}",
        f"TOS --{draw.choice(('and', 'or', 'xor'))}-tos {draw.choice(('0x10', '0xfd', '0x03', '0'))}",
        f"{name.upper()} --{name}-{way} {draw.choice(('64', '1', '255', '5'))}",
    )
    return f"-j {draw.choice(found)}"
