"""Random matches of the header and the frame, around values that random packets have."""

from __future__ import annotations

import random
from typing import Final

from translate.ir import Family

__all__ = ["header_match", "header_target", "option_match"]

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
    matches = [
        f"length {no}--length {draw.choice(_LENGTHS)}",
        f"{name} {no if way == 'eq' else ''}--{name}-{way} {value}",
        f"dscp {no}--dscp {draw.choice(_DSCPS)}",
        f"tos {no}--tos {draw.choice(_TOSES)}",
        f"pkttype {no}--pkt-type {draw.choice(_TYPES)}",
    ]
    if chain in _WITH_FRAME:
        matches.append(f"mac {no}--mac-source {draw.choice(_MACS)}")
    return f"-m {draw.choice(matches)}"


_ECNS: Final = (
    *("--ecn-tcp-ece", "! --ecn-tcp-ece", "! --ecn-tcp-cwr", "--ecn-tcp-ece --ecn-tcp-cwr"),
    *("--ecn-tcp-cwr --ecn-ip-ect 1", "! --ecn-tcp-cwr ! --ecn-ip-ect 0"),
)
_IPSEC: Final = {"50": "esp", "51": "ah", "108": "ipcomp"}
_INDEXES: Final = ("0", "5", "256:511", ":65535", "65536:", "0:4294967295")
_SIZES: Final = ("536", "1460", "1400:1460", ":1400", "1401:", "0:65535")


def option_match(draw: random.Random, proto: str, *, sizes: bool) -> str:
    """Return a match of congestion bits, of IPsec or, with ``sizes``, of the MSS; for ``-p proto``.

    ``draw`` is apart from the generator of the other matches: what a seed draws of them stays the same.
    """
    no = "! " if draw.random() < 0.3 else ""
    if proto in _IPSEC:
        return f"-m {_IPSEC[proto]} {no}--{_IPSEC[proto]}spi {draw.choice(_INDEXES)}"
    if proto != "tcp" or draw.random() < 0.2:
        return f"-m ecn {no}--ecn-ip-ect {draw.choice('0123')}"
    if sizes and draw.random() < 0.5:
        return f"-m tcpmss {no}--mss {draw.choice(_SIZES)}"
    return f"-m ecn {draw.choice(_ECNS)}"


_SET_TOS: Final = ("0x10", "0xb8/0xff", "0x10/0x3f", "4/0x1c", "0/0", "0x11/0x10", "2/3", "1/2", "0/0x3f")


def header_target(draw: random.Random, family: Family) -> str:
    """Return a target of the mangle table that changes a header."""
    name = "ttl" if family is Family.IP else "hl"
    way = draw.choice(("set", "set", "inc", "dec"))
    targets = (
        f"DSCP --set-dscp {draw.choice(_DSCPS)}",
        f"TOS --set-tos {draw.choice(_SET_TOS)}",
        f"TOS --{draw.choice(('and', 'or', 'xor'))}-tos {draw.choice(('0x10', '0xfd', '0x03', '0'))}",
        f"{name.upper()} --{name}-{way} {draw.choice(('64', '1', '255', '5'))}",
    )
    return f"-j {draw.choice(targets)}"
