"""Random matches of the header and the frame, around values that random packets have."""

from __future__ import annotations

import random
from typing import Final

from translate.ir import Family

__all__ = ["hash_target", "header_match", "header_target", "option_match", "time_match"]

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
    operation, value = draw.choice(_TTLS).split()
    matches = [
        f"length {no}--length {draw.choice(_LENGTHS)}",
        f"{name} {no if operation == 'eq' else ''}--{name}-{operation} {value}",
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

    ``draw`` is separate from the generator of the other matches, so that those of a seed do not change.
    """
    no = "! " if draw.random() < 0.3 else ""
    if proto in _IPSEC:
        return f"-m {_IPSEC[proto]} {no}--{_IPSEC[proto]}spi {draw.choice(_INDEXES)}"
    if proto != "tcp" or draw.random() < 0.2:
        return f"-m ecn {no}--ecn-ip-ect {draw.choice('0123')}"
    if sizes and draw.random() < 0.5:
        return f"-m tcpmss {no}--mss {draw.choice(_SIZES)}"
    return f"-m ecn {draw.choice(_ECNS)}"


_TIMES: Final = (
    *("--timestart 08:00 --timestop 17:00", "--timestart 22:00 --timestop 06:00", "--timestop 12:00"),
    *("--timestart 23:00 --timestop 23:00", "--timestart 12:00", "--timestart 06:00:01 --timestop 06:00"),
)
_DATES: Final = (
    "--datestart 2026-01-05",
    "--datestop 2026-01-05T12:00:00",
    "--datestart 2026 --datestop 2027",
)
_DAYS: Final = ("Mon", "Sat,Sun", "1,3,5", "Mon,Tue,Wed,Thu,Fri,Sat,Sun")


def time_match(draw: random.Random) -> str:
    """Return a match of the clock that nftables can express, for checks that need no packets."""
    words = ["-m time"]
    if draw.random() < 0.3:
        words.append(draw.choice(_DATES))
    if draw.random() < 0.7:
        words.append(draw.choice(_TIMES))
    if draw.random() < 0.6:
        words.append(f"{'! ' if draw.random() < 0.3 else ''}--weekdays {draw.choice(_DAYS)}")
    if draw.random() < 0.4 and "22:00" in " ".join(words):
        words.append("--contiguous")
    return " ".join(words)


_SET_TOS: Final = ("0x10", "0xb8/0xff", "0x10/0x3f", "4/0x1c", "0/0", "0x11/0x10", "2/3", "1/2", "0/0x3f")


def header_target(draw: random.Random, family: Family) -> str:
    """Return a target of the mangle table that changes a header."""
    name = "ttl" if family is Family.IP else "hl"
    operation = draw.choice(("set", "set", "inc", "dec"))
    targets = (
        f"DSCP --set-dscp {draw.choice(_DSCPS)}",
        f"TOS --set-tos {draw.choice(_SET_TOS)}",
        f"TOS --{draw.choice(('and', 'or', 'xor'))}-tos {draw.choice(('0x10', '0xfd', '0x03', '0'))}",
        f"{name.upper()} --{name}-{operation} {draw.choice(('64', '1', '255', '5'))}",
    )
    return f"-j {draw.choice(targets)}"


def hash_target(draw: random.Random, family: Family) -> str:
    """Return a target that marks packets by a hash."""
    parts = draw.sample(("ct", "src", "dst", "proto", draw.choice(("sport", "dport", "spi"))), 3)
    prefix = f"--hmark-src-prefix {draw.choice((0, family.bits - 1))} " if draw.random() < 0.5 else ""
    parts = [part for part in parts if not prefix or part != "src"] or ["dst"]
    numbers = f"--hmark-rnd {draw.randint(0, 9)} --hmark-mod {draw.choice((2, 4, 0xFFFFFFFF))}"
    return f"-j HMARK {prefix}--hmark-tuple {','.join(parts)} {numbers}"
