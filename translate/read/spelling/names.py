"""Names for protocols and hosts, from tables that are part of nfparity.

A dump must mean the same on every machine, so ``/etc/services``, ``/etc/protocols`` and DNS are never used.
The tables have the names of Debian's ``netbase`` and those of iptables itself.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from translate.ir import Family
from translate.read.spelling.numbers import unsigned
from translate.read.spelling.services import SERVICES

__all__ = ["HOSTS", "PROTOCOLS", "protocol_number", "service_port"]

_TABLE: Final = """
    icmp 1 igmp 2 ggp 3 ipencap 4 ip-encap 4 st 5 tcp 6 egp 8 igp 9 pup 12 udp 17 hmp 20 xns-idp 22 rdp 27
    iso-tp4 29 dccp 33 xtp 36 ddp 37 idpr-cmtp 38 ipv6 41 ipv6-route 43 ipv6-frag 44 idrp 45 rsvp 46 gre 47
    esp 50 ipsec-esp 50 ipv6-crypt 50 ah 51 ipsec-ah 51 ipv6-auth 51 skip 57 icmpv6 58 ipv6-icmp 58
    ipv6-nonxt 59 ipv6-opts 60 rspf 73 cphb 73 vmtp 81 eigrp 88 ospf 89 ospfigp 89 ax.25 93 ipip 94
    etherip 97 encap 98 pim 103 ipcomp 108 vrrp 112 carp 112 l2tp 115 isis 124 sctp 132 fc 133 ipv6-mh 135
    mobility-header 135 mh 135 udplite 136 mpls-in-ip 137 manet 138 hip 139 shim6 140 wesp 141 rohc 142
    ethernet 143
"""
_WORDS: Final = _TABLE.split()

PROTOCOLS: Final = MappingProxyType(
    {name: int(number) for name, number in zip(_WORDS[::2], _WORDS[1::2], strict=True)}
)
"""Protocol names (lower case) and their IANA numbers (``xtables_chain_protos``, ``netbase``)."""

HOSTS: Final = MappingProxyType(
    {
        (Family.IP, "localhost"): "127.0.0.1",
        (Family.IP, "loopback"): "127.0.0.0",
        (Family.IP6, "localhost"): "::1",
    }
)
"""Names that every machine has for its own addresses. Other names would need DNS, and are refused."""


_EVERY: Final = frozenset({"all", "ip", "hopopt"})
"""Names of protocol 0, which means every protocol in a rule."""


def protocol_number(text: str) -> int | None:
    """Return the number of a protocol given by number or name; 0 for ``all``; None if unknown.

    Names are matched without regard to case, as ``-p`` does.
    """
    number = unsigned(text, 255)
    if number is not None:
        return number
    name = text.lower()
    return 0 if name in _EVERY else PROTOCOLS.get(name)


def service_port(text: str) -> int | None:
    """Return a port (0-65535) given by number or name, or None (``xtables_parse_port``)."""
    number = unsigned(text, 65535)
    return SERVICES.get(text) if number is None else number
