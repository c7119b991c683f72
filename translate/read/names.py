"""Names for protocols, ports and hosts, from a table that is part of nfparity.

A dump must mean the same on every machine, so ``/etc/services``, ``/etc/protocols`` and DNS are
never asked. The tables hold the names that Debian's ``netbase`` gives to ports which rules name.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from translate.ir import Family

__all__ = ["HOSTS", "PROTOCOLS", "SERVICES", "protocol_number", "service_port"]

PROTOCOLS: Final = MappingProxyType(
    {
        "icmp": 1,
        "igmp": 2,
        "ipencap": 4,
        "ip-encap": 4,
        "ipip": 94,
        "tcp": 6,
        "egp": 8,
        "igp": 9,
        "udp": 17,
        "rdp": 27,
        "dccp": 33,
        "ipv6": 41,
        "ipv6-route": 43,
        "ipv6-frag": 44,
        "rsvp": 46,
        "gre": 47,
        "esp": 50,
        "ipv6-crypt": 50,
        "ah": 51,
        "ipv6-auth": 51,
        "skip": 57,
        "icmpv6": 58,
        "ipv6-icmp": 58,
        "ipv6-nonxt": 59,
        "ipv6-opts": 60,
        "eigrp": 88,
        "ospf": 89,
        "etherip": 97,
        "pim": 103,
        "ipcomp": 108,
        "vrrp": 112,
        "carp": 112,
        "l2tp": 115,
        "isis": 124,
        "sctp": 132,
        "ipv6-mh": 135,
        "mobility-header": 135,
        "mh": 135,
        "udplite": 136,
    }
)
"""Protocol names (lower case) and their IANA numbers (``xtables_chain_protos``, ``netbase``)."""

SERVICES: Final = MappingProxyType(
    {
        "tcpmux": 1,
        "echo": 7,
        "discard": 9,
        "systat": 11,
        "daytime": 13,
        "netstat": 15,
        "qotd": 17,
        "chargen": 19,
        "ftp-data": 20,
        "ftp": 21,
        "ssh": 22,
        "telnet": 23,
        "smtp": 25,
        "mail": 25,
        "time": 37,
        "whois": 43,
        "tacacs": 49,
        "domain": 53,
        "bootps": 67,
        "bootpc": 68,
        "tftp": 69,
        "gopher": 70,
        "finger": 79,
        "http": 80,
        "www": 80,
        "kerberos": 88,
        "pop3": 110,
        "pop-3": 110,
        "sunrpc": 111,
        "portmapper": 111,
        "auth": 113,
        "ident": 113,
        "nntp": 119,
        "ntp": 123,
        "epmap": 135,
        "loc-srv": 135,
        "netbios-ns": 137,
        "netbios-dgm": 138,
        "netbios-ssn": 139,
        "imap2": 143,
        "imap": 143,
        "snmp": 161,
        "snmp-trap": 162,
        "snmptrap": 162,
        "xdmcp": 177,
        "bgp": 179,
        "irc": 194,
        "ldap": 389,
        "svrloc": 427,
        "https": 443,
        "snpp": 444,
        "microsoft-ds": 445,
        "kpasswd": 464,
        "submissions": 465,
        "ssmtp": 465,
        "smtps": 465,
        "urd": 465,
        "isakmp": 500,
        "printer": 515,
        "syslog": 514,
        "route": 520,
        "router": 520,
        "dhcpv6-client": 546,
        "dhcpv6-server": 547,
        "rtsp": 554,
        "nntps": 563,
        "submission": 587,
        "ipp": 631,
        "ldaps": 636,
        "domain-s": 853,
        "rsync": 873,
        "ftps-data": 989,
        "ftps": 990,
        "telnets": 992,
        "imaps": 993,
        "pop3s": 995,
        "socks": 1080,
        "openvpn": 1194,
        "ms-sql-s": 1433,
        "ms-sql-m": 1434,
        "l2f": 1701,
        "l2tp": 1701,
        "radius": 1812,
        "radius-acct": 1813,
        "nfs": 2049,
        "iscsi-target": 3260,
        "mysql": 3306,
        "ms-wbt-server": 3389,
        "svn": 3690,
        "epmd": 4369,
        "ipsec-nat-t": 4500,
        "mdns": 5353,
        "postgresql": 5432,
        "postgres": 5432,
        "amqp": 5672,
        "amqps": 5671,
        "sip": 5060,
        "sip-tls": 5061,
        "xmpp-client": 5222,
        "xmpp-server": 5269,
        "x11": 6000,
        "redis": 6379,
        "ircd": 6667,
        "ircs-u": 6697,
        "http-alt": 8080,
        "webcache": 8080,
        "puppet": 8140,
        "git": 9418,
        "munin": 4949,
        "zabbix-agent": 10050,
        "zabbix-trapper": 10051,
    }
)
"""Service names and their ports."""

HOSTS: Final = MappingProxyType(
    {
        (Family.IP, "anywhere"): "0.0.0.0/0",
        (Family.IP, "localhost"): "127.0.0.1",
        (Family.IP, "loopback"): "127.0.0.0",
        (Family.IP6, "anywhere"): "::/0",
        (Family.IP6, "localhost"): "::1",
    }
)
"""Host names as listings print them. Every other name would need DNS, and is refused."""


def protocol_number(text: str) -> int | None:
    """Return the number of a protocol given by number or name; 0 for ``all``; None if unknown.

    Names are matched without regard to case, as ``xtables_parse_protocol`` does.
    """
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) < 6 else 256
        return number if number <= 255 else None
    name = text.lower()
    return 0 if name == "all" else PROTOCOLS.get(name)


def service_port(text: str) -> int | None:
    """Return a port (0-65535) given by number or name, or None."""
    if text.isascii() and text.isdigit():
        number = int(text) if len(text) < 12 else 65536
        return number if number <= 65535 else None
    return SERVICES.get(text)
