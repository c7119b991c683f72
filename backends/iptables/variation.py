"""Iptables rules that may treat two equal flows differently.

A rule may vary if it is not known to depend on the packets of a flow alone.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["may_vary"]

_QUOTED: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_MATCH: Final = re.compile(r" -m (\S+)")
_TARGET: Final = re.compile(r" -[jg] (\S+)")
_CHAIN: Final = re.compile(r"^:(\S+)", re.MULTILINE)
_RANGE: Final = re.compile(r" --(?:to-destination|to-ports) \S*-| --random(?![\w-])")
"""A range of destinations, from which one is chosen."""
_MATCHES: Final = re.compile(
    "addrtype|comment|connmark|conntrack|dscp|icmp6?|iprange|ipv6header|length|mac|mark|multiport|physdev"
    "|pkttype|sctp|state|tcp|tcpmss|tos|ttl|udp"
)
_TARGETS: Final = re.compile(
    "ACCEPT|CONNMARK|CT|DNAT|DROP|LOG|MARK|MASQUERADE|NOTRACK|REDIRECT|REJECT|RETURN|SNAT|TCPMSS"
)


def may_vary(text: str) -> bool:
    """Return whether a rule may depend on more than the packets of a flow; a source port is not looked at."""
    plain = _QUOTED.sub("", text)
    matches = set(_MATCH.findall(plain))
    targets = set(_TARGET.findall(plain)) - set(_CHAIN.findall(plain))
    return (
        not all(map(_MATCHES.fullmatch, matches))
        or not all(map(_TARGETS.fullmatch, targets))
        or _RANGE.search(plain) is not None
    )
