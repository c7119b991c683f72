"""Values of options, usual and odd ones, for each kind of argument.

Usual values are those that iptables reads in most places. Odd values are at a limit or beyond it, or have an
unusual spelling: iptables reads some of them and refuses the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from translate.ir import Family

__all__ = ["pools"]

_NUMBERS: Final = ("0", "1", "2", "3", "10", "16", "255", "65535")
_ODD_NUMBERS: Final = (
    *("00", "010", "08", "0x10", "0X1F", "0x", "+5", "-1", "1 ", " 1", "1e3", ""),
    *("256", "65536", "1.0", "0b1"),
    *("4294967295", "4294967296", "0xffffffff", "0x100000000", "99999999999999999999", "one", "1/1", "!"),
)
_WORDS: Final = (
    *("6&0xFF=1", "0>>22&0x3C@0>>24=0,3:5&&6&0xFF=1", "12=0x0a000001:0x0a0000ff", "0=0", "0<<31>>0x1f@4=7"),
    "&&".join(["0=1"] * 10),
)
_ODD_WORDS: Final = (
    *("", "0", "0=", "=0", "0=1&&", "0=1&2", "0=1,", "0=5:3", "0<1=2"),
    *("0>>32=0", "0<<040=1", "00=08", "+1=+2"),
    *("0@@1=2", "-1=0", "4294967295=4294967295", "4294967296=0", "0=1:2:3", "0&&1=2", "0x=1", "0&1&1=1,1"),
    *("&&".join(["0=1"] * 11), "0" + "&1" * 9 + "=1", "0" + "&1" * 10 + "=1", "0=" + ",".join(["1"] * 11)),
)
_PORTS: Final = ("1", "22", "53", "80", "443", "1024", "65535", "ssh", "http", "domain", "echo")
_ODD_PORTS: Final = (
    *("0", "080", "0x50", "+80", "-80", "65536", "", "ftp-data", "SSH", "no-such-name", "syslog", "tftp"),
    *("http-alt", "https", "80-81", "22:80", "80/tcp", "*", "any", "snmp-trap", "x11-1", "qotd"),
)
_RANGES: Final = ("1:2", "22:80", "1024:65535", ":1023", "53:", "ssh:http", "0:65535", "7:7")
_ODD_RANGES: Final = (
    *(":", "::", "2:1", "1:2:3", "1-2", "80:80", "0x10:0x20", "http:ssh", "1,2"),
    *("ftp-data:ssh", "0:0"),
)
_NAT_PORTS: Final = ("80", "8000-8010", "1-65535", "http", "80-80")
_ODD_NAT_PORTS: Final = (
    *("0", "0-0", "10-5", "80:81", "ftp-data", "ftp-ssh", "10-ssh", "ssh-10", "0x50"),
    *("80-", "-80", "65536", ""),
    *("1000-2000/1000", "1000-2000/3000", "10-20/ftp", "10-20/0", "10/5", "10-20/"),
    *("010-020", "80,81", "echo"),
)
_MULTI: Final = ("53,80", "80,81,443", "50:53,80", "443", "ssh,http", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15")
_ODD_MULTI: Final = (
    *("80:80", "80:79", ":80", "80:", ",", "80,", "53,53", "1:2,3:4,5:6,7:8,9:10,11:12,13:14,15:16", "0,1"),
    *("1:2,3:4,5:6,7:8,9:10,11:12,13:14,15", "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "ssh:http", "0x50,80"),
    *("1,2,3,4,5,6,7,8,9,10,11,12,13,14:15", "syslog", "ftp-data", "tftp,80", "80, 81", "1-2"),
)
_MARKS: Final = ("0", "1", "0x4000", "0x4000/0x4000", "1/3", "0xff/0x0f", "4294967295")
_ODD_MARKS: Final = (
    *("010", "0x1/010", "0x100000000", "-1", "1/", "/1", "1/2/3", "0x", "0xg", "1 "),
    *("", "0x1/0x1ffffffff"),
)
_ADDRESSES: Final = {
    Family.IP: (
        *("10.0.0.1", "10.0.0.0/8", "10.1.2.3/24", "0.0.0.0/0"),
        *("192.0.2.0/255.255.255.0", "127.0.0.1/32"),
    ),
    Family.IP6: ("2001:db8::1", "2001:db8::/32", "::/0", "fe80::/10", "::1/128", "::ffff:1.2.3.4"),
}
_ODD_ADDRESSES: Final = {
    Family.IP: (
        *("10.0.0.1/33", "10.0.0.1/255.0.255.0", "10.1", "10", "10.0.0.256", "010.0.0.1"),
        *("0x0a000001", "10.0.0.1/"),
        *("10.0.0.1/8/8", "::1", "10.0.0.1,10.0.0.2", "anywhere", "localhost"),
        *("10.0.0.1/0", "0/0", "1.2.3.4/0x8"),
        *("10.0.0.1/08", "10.0.0.1/255.255", "10.0.0.1-10.0.0.3", ""),
        *("10.0.0.1,10.0.0.0/8", "1.2.3.4/255.255.255.255"),
    ),
    Family.IP6: (
        *("2001:db8::1/129", "1.2.3.4", "2001:db8::1/ffff::", "::1,::2", "fe80::1%eth0"),
        *(":::", "2001:db8::1/"),
        *("::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe", "[::1]", "2001:DB8::1", "::/ffff::ffff", "::1/0x40"),
    ),
}
_SPANS: Final = {
    Family.IP: ("10.0.0.1-10.0.0.9", "10.0.0.1", "0.0.0.0-255.255.255.255", "10.0.0.1-10.0.0.1"),
    Family.IP6: ("2001:db8::1-2001:db8::9", "::1", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
}
_ODD_SPANS: Final = {
    Family.IP: (
        *("10.0.0.9-10.0.0.1", "10.0.0.1-", "-10.0.0.1", "10.0.0.0/8", "10.1-10.2"),
        *("10.0.0.1-10.0.0.2-10.0.0.3", ""),
    ),
    Family.IP6: ("::9-::1", "::1-", "1.2.3.4-1.2.3.5", "::1/64", "[::1]-[::2]"),
}
_BINDINGS: Final = {
    Family.IP: (
        *("10.0.0.1", "10.0.0.1-10.0.0.9", "10.0.0.1:80", "10.0.0.1-10.0.0.9:80-90"),
        *(":80", "10.0.0.1:http"),
    ),
    Family.IP6: (
        *("2001:db8::1", "2001:db8::1-2001:db8::9", "[2001:db8::1]:80"),
        *("[2001:db8::1-2001:db8::9]:80-90", "[]:80"),
    ),
}
_ODD_BINDINGS: Final = {
    Family.IP: (
        *("10.0.0.1:80-90/80", "10.0.0.1:1000-2000/1000", "10.0.0.1:ftp-data"),
        *("10.0.0.1:echo-ssh", "10.0.0.1:0", "10.1"),
        *("10.0.0.9-10.0.0.1", "10.0.0.1:", ":", "", "10.0.0.1:90-80"),
        *("10.0.0.1-10.0.0.9-10.0.0.11", "::1", "0.0.0.0"),
        *("10.0.0.1:80:81", "10.0.0.1/8", "10.0.0.1:0x50", "10.0.0.1:80-0x60"),
        *("10.0.0.1 :80", "localhost", ":80-90/80"),
    ),
    Family.IP6: (
        *("[2001:db8::1]", "[2001:db8::1]80", "2001:db8::1:80", "[2001:db8::1"),
        *("[2001:db8::9-2001:db8::1]:1", "1.2.3.4"),
        *("[2001:db8::1]:1000-2000/1000", "[2001:db8::1]:ftp-data"),
        *("[2001:db8::1]:echo-ssh", ":80", "[::1]:0", "::"),
    ),
}
_LENGTHS: Final = ("0", "60", "1:2", ":100", "1400:", "0:65535", "0x10:020")
_ODD_LENGTHS: Final = (
    *("", ":", "1:2:3", "9:5", "65536", "1:65536", "-1:5", "1-2", "1:x", "+1:+2", "08", "1,2"),
)
_BYTES: Final = ("0", "1", "64", "255", "0x40", "010")
_ODD_BYTES: Final = ("256", "-1", "", "x", "1/2", "+5", " 7", "08", "0x", "1.0")
_DSCPS: Final = ("0", "1", "0x2e", "63", "0x3f")
_ODD_DSCPS: Final = ("64", "0x40", "-1", "CS1", "", "010")
_CLASSES: Final = ("BE", "EF", "CS0", "CS7", "AF11", "AF43", "af22", "Ef")
_ODD_CLASSES: Final = ("CS8", "CS", "AF14", "AF4", "EFX", "BEST", "0x2e", "", "AF11AF12", " EF")
_TOSES: Final = ("0", "0x10", "0xff", "4/0x1c", "0x10/0x3f", "3/0", "Minimize-Delay", "normal-service")
_ODD_TOSES: Final = (
    *("256", "1/256", "1/", "/1", "", "minimize", "0x10/x", "1/2/3", "Maximize_Throughput", "-1"),
)
_MACS: Final = ("02:00:00:00:00:01", "aA:bB:cC:dD:eE:fF", "ff:ff:ff:ff:ff:ff", "2:0:0:0:0:1")
_ODD_MACS: Final = (
    *("02:00:00:00:00", "02:00:00:00:00:01:02", "020:0:0:0:0:1", ":::::", "x:0:0:0:0:0", ""),
    *("1-2-3-4-5-6",),
)
_PACKET_TYPES: Final = ("unicast", "broadcast", "multicast", "otherhost", "bcast", "mcast", "host", "UNICAST")
_ODD_PACKET_TYPES: Final = ("outgoing", "uni", "", "0", "other", "unicast,broadcast")
_TIMES: Final = ("00:00", "08:30:15", "23:59:59", "6:05", "12:00")
_ODD_TIMES: Final = (
    *("24:00", "12:60", "12:00:60", "12", "", ":", ":30", "12:", "12:00:", "1:2:3:4"),
    *("+1:+2", " 1: 2", "-1:00", "12:00x", "012:008"),
)
_DATES: Final = (
    *("2026-01-05", "2026-01-05T12:00:00", "2038-01-19T03:14:07", "2024-02-29T23:59", "1970"),
    *("2026-12",),
)
_ODD_DATES: Final = (
    *("2039", "1969", "2026-13", "2026-00", "2026-02-31", "2026-01-32", "1970-00", "2026-01-00", "2026-"),
    *("2026-01-05T", "2026-01-05 12:00", "2026-01-05T24", "2026-01-05T12:00:60", "", "x", "2038-12-31"),
    *("2026--1", "2026-1-5T1:2:3", "2026-01-05T12:00:00Z"),
)
_WEEKDAYS: Final = ("Mon", "Sat,Sun", "1,2,3", "Mon,Tue,Wed,Thu,Fri,Sat,Sun", "7", "Monday,We")
_ODD_WEEKDAYS: Final = (
    *("0", "8", "mon", "M", "", ",", "Mon,", "Mon,,Tue", "0x3", "08", "Xyz", "33", "Mo,Mo", "32"),
)
_MONTHDAYS: Final = ("1", "1,15,31", "28,29,30", "31", "0x5")
_ODD_MONTHDAYS: Final = ("0", "32", "", ",", "1,", "1,,2", "x", "123", "08", "5 ", "0,1")
_NAMES: Final = ("one", "DEFAULT", "a.b-c_1")
_ODD_NAMES: Final = ("", "a" * 31, "a" * 32, "a" * 199, "a" * 200, "a/b", '"two words"', "é")
_TEXTS: Final = ("plain", '"two words"', "a-b_c", '"it\'s"', '""')
_ODD_TEXTS: Final = (
    *("x" * 28, "x" * 29, "x" * 30, "x" * 63, "x" * 64, "x" * 127, "x" * 128),
    *("x" * 255, "x" * 256, "é", '"\\"q\\""'),
)
_STATES: Final = (
    *("NEW", "ESTABLISHED", "RELATED", "INVALID", "UNTRACKED"),
    *("NEW,RELATED", "ESTABLISHED,INVALID"),
)
_STATUSES: Final = (
    *("NONE", "EXPECTED", "SEEN_REPLY", "ASSURED", "CONFIRMED"),
    *("ASSURED,EXPECTED", "NONE,ASSURED"),
)
_TYPES: Final = (
    *("LOCAL", "UNICAST", "BROADCAST", "MULTICAST", "UNSPEC", "LOCAL,UNICAST"),
    *("ANYCAST", "UNREACHABLE"),
)
_ODD_TYPES: Final = (
    *("BLACKHOLE", "PROHIBIT", "THROW", "NAT", "XRESOLVE", "local", "WRONG", ""),
    *("LOCAL,", ",LOCAL", "LOC", "LOCAL LOCAL"),
)
_INTERFACES: Final = ("eth0", "eth+", "lo", "wg-0.1", "+")
_ODD_INTERFACES: Final = (
    *("", "a" * 15, "a" * 16, "eth0/1", "e th", "et!h", "eth*", "e+h", "a" * 15 + "+", "!", "-x"),
)
_PROTOCOLS: Final = ("tcp", "udp", "icmp", "sctp", "6", "17", "all", "udplite", "ipv6-icmp", "icmpv6", "dccp")
_ODD_PROTOCOLS: Final = (
    *("0", "256", "255", "TCP", "tcpp", "esp", "06", "0x11", "ip", "ipv6", "gre"),
    *("99", "-1", "", "hopopt", "ah", "mh"),
)
_FLAGS: Final = ("SYN", "SYN,ACK", "ALL", "NONE", "FIN,SYN,RST,PSH,ACK,URG", "RST")
_ODD_FLAGS: Final = ("syn", "SYN,", "", "SYN ACK", "ECE", "0x3f", "SYN,SYN", "ALL,NONE", "none,syn")

_MASKS: Final = {
    Family.IP: ("255.255.255.255", "255.255.255.0", "255.0.255.0", "0.0.0.0"),
    Family.IP6: ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff::", "::"),
}

_Pool = tuple[Sequence[str], Sequence[str]]


def pools(family: Family) -> dict[str, _Pool]:
    """Return the usual and the unusual values of each kind of argument."""
    return {
        "prefix6": (
            ("fd00::/64", "fd00:1::/48", "2001:db8::/32", "::/0", "2001:db8:0:f0::/60"),
            (
                "fd00::",
                "fd00::1/64",
                "fd00::/65",
                "fd00::/129",
                "10.0.0.0/8",
                "fd00::/",
                "/64",
                "",
                "FD00::/0x40",
            ),
        ),
        "realm": (
            ("0", "5", "0x10/0xff", "0x0", "1/0xffffffff"),
            ("", "5/", "/5", "4294967296", "05/010"),
        ),
        "chunk-way": (("any", "all", "only", "ANY"), ("none", "an", "")),
        "chunks": (
            ("INIT", "DATA,INIT", "asconf", "SHUTDOWN_COMPLETE,INIT_ACK", "INIT,INIT"),
            ("ALL", "NONE", "DATA:Be", "init,", "4", "INIT:", ""),
        ),
        "dccp-types": (
            ("REQUEST", "DATA,ACK", "syncack", "INVALID", "RESET,SYNC"),
            ("ALL", "", "DATA,", "3", "REQ", "DATA RESET"),
        ),
        "mobility": (
            ("bu", "binding-error", "h", "0:3", ":4", "ba:", "0:255", "0x10", "HOME-TEST:6", "200"),
            ("", ":", "5:3", "256", "1:2:3", "bu,ba", "bux", "-1", "home-test-inits", "be:brr"),
        ),
        "cgroup": (("/",), ("", "a b", "../x", "a/./b", "*")),
        "bit": (("0", "1"), ("2", "0x1", "01", "", "-1")),
        "words": (_WORDS, _ODD_WORDS),
        "number": (_NUMBERS, _ODD_NUMBERS),
        "ports": ((*_PORTS, *_RANGES), (*_ODD_PORTS, *_ODD_RANGES)),
        "nat-ports": (_NAT_PORTS, _ODD_NAT_PORTS),
        "multi": ((*_MULTI, *_PORTS), (*_ODD_MULTI, *_ODD_PORTS, *_RANGES)),
        "mark": (_MARKS, _ODD_MARKS),
        "bits": (_MARKS[:3], (*_MARKS[3:], *_ODD_MARKS)),
        "address": (_ADDRESSES[family], _ODD_ADDRESSES[family]),
        "span": (_SPANS[family], (*_ODD_SPANS[family], *_ADDRESSES[family])),
        "binding": (_BINDINGS[family], _ODD_BINDINGS[family]),
        "name": (_NAMES, _ODD_NAMES),
        "text": (_TEXTS, _ODD_TEXTS),
        "state": (_STATES, (*_STATUSES, "new", "NEW,", "", "SNAT", "DNAT,NEW", "WRONG", "NEW NEW")),
        "ctstate": (
            (*_STATES, "SNAT", "DNAT,NEW"),
            ("new,dnat", "NEW,", ",NEW", "", "WRONG", "CONFIRMED", "NEWER"),
        ),
        "status": (_STATUSES, ("assured", "SNAT", "", "NONE,", "SEEN_REPLY,SEEN_REPLY", "DYING", "all")),
        "direction": (("ORIGINAL", "REPLY"), ("original", "Reply", "ORIG", "", "BOTH", "ORIGINAL,REPLY")),
        "type": (_TYPES, _ODD_TYPES),
        "interface": (_INTERFACES, _ODD_INTERFACES),
        "protocol": (_PROTOCOLS, _ODD_PROTOCOLS),
        "flags": (_FLAGS, _ODD_FLAGS),
        "icmp": (
            ("8", "0", "3/1", "3", "any", "echo-request", "port-unreachable", "11/0", "TOS-host-redirect"),
            (
                *("255", "255/0", "256", "8/256", "ping", "0:255", "255/0:255", "3/1:2", "3:4"),
                *("3/", "/1", "echo", "a", ""),
            ),
        ),
        "icmp6": (
            ("128", "1/3", "echo-request", "no-route", "neighbour-solicitation", "packet-too-big"),
            (
                *("255", "256", "128/0", "ping", "1/256", "any", "1/", "echo", "neighb", "", "0"),
                *("redirect", "0:255", "mld"),
            ),
        ),
        "reject": (
            ("icmp-port-unreachable", "icmp6-port-unreachable", "tcp-reset", "icmp-host-prohibited"),
            (
                *("port-unreach", "tcp-rst", "tcp-r", "icmp-", "echo-reply"),
                *("ICMP-NET-PROHIBITED", "adm-prohibited", "", "no-r"),
            ),
        ),
        "mode": (("random", "nth"), ("Random", "", "rand", "fixed")),
        "probability": (
            ("0.5", "0.33333333349", "0", "1", ".25"),
            ("1.0", "1.5", "-0.1", "5e-1", "0x1p-1", "", "nan", "1/2", "+.5"),
        ),
        "level": (
            ("4", "debug", "warning", "0", "7"),
            ("8", "DEBUG", "warn", "err", "error", "panic", "emerg", "07", "", "deb"),
        ),
        "group": (("0", "1", "5", "65535"), _ODD_NUMBERS),
        "host": (_ADDRESSES[family][:1], ("", "10.0.0.1/8", "::1/128", "one two")),
        "tcp-options": (("2", "sack,timestamp", "3,253"), ("1", "0", "2,mss", "256", "", "sack,", "SACK")),
        "zone": (("1", "65535", "mark", "0x10"), ("0", "65536", "-1", "Mark", "", "1 ", "one", "010")),
        "helper": (("ftp", "tftp"), ("nonsense", "")),
        "expecting": (("ftp", "sip", "ftp-2121"), ('""', "a" * 29, "a" * 30, "Q.931", "two words", "é")),
        "events": (("new", "new,destroy", "mark,reply"), ("", "new,", "NEW", "all", "new new")),
        "expevents": (("new",), ("", "destroy", "new,new")),
        "audited": (("accept", "drop", "reject"), ("Accept", "DROP", "", "log", "acc")),
        "class": (
            ("1:1", "ffff:0", "0x1:0x2a", "0:0"),
            ("1", ":1", "1:", "", "1:g", "1 :1"),
        ),
        "sides": (
            ("src", "dst", "src,dst", "dst,dst,src"),
            ("", "SRC", "src,", "src,dst,src,dst,src,dst,src", "both"),
        ),
        "object": (_NAMES, ("", "a" * 31, "a" * 32)),
        "set": (("nets", "pairs"), ("", "a" * 32)),
        "seconds": (("1", "60", "3600"), _ODD_NUMBERS),
        "label-number": (("0", "5", "127"), ("128", "-1", "")),
        "nodes": (("2", "5", "32"), ("0", "33", "x")),
        "node": (("1", "2", "3"), ("0", "33", "")),
        "hash-seed": (("0", "0xdeadbeef", "7"), ("0x100000000", "x")),
        "bytecode": (("1,6 0 0 1", "2,128 0 0 0,22 0 0 0"), ("", "0,", "2,6 0 0 1", "1,4 0 0 1")),
        "hashed": (("src", "src,dst,sport,dport,proto", "ct", "spi,s", "dp,ct"), ("", "x", "src,", "SRC,D")),
        "duration": (("250ms", "1s", "500.0ms"), ("", "x", "1h", "-1s")),
        "rate": (
            ("3/min", "1/second", "10/hour", "7/m", "100", "1000/DAY"),
            (
                *("5/", "0/s", "1/seconds", "2/M", "x", "10001/s", "9999/s", "10000", "1/d", "/s"),
                *("+3/s", " 3/s", "3x/s", "03/s", "0x3/s", "-1/s", "1/s/s", ""),
            ),
        ),
        "owner": (
            ("0", "1000", "0-999", "1:5", "root"),
            ("5-1", "-", "1-", "-1", "4294967294", "4294967295", "0x10", "1-2-3", "+5", "010"),
        ),
        "way": (("in", "out"), ("", "IN", "fwd")),
        "policy": (("none", "ipsec"), ("", "any", "IPSEC")),
        "ipsec-mode": (("tunnel", "transport"), ("", "Tunnel", "beet", "tun")),
        "ipsec-protocol": (("esp", "ah", "50", "108"), ("", "tcp", "ESP", "0", "256")),
        "label": (("one", "two"), ("", "a" * 31)),
        "keys": (("srcip", "srcip,dstport", "dstip,srcport", "srcip,dstip"), ("", "SRCIP", "srcip,", "src")),
        "prefix-length": (("0", "8", "24", "32"), ("33", "129", "-1", "255.0.0.0", "")),
        "network": (("0", "8", "24", "32"), ("-1", "x", "0x10", "")),
        "table": (("100", "1000", "60000"), ("0", "-1", "x", "0x10", "")),
        "burst": (("1", "5", "20", "37"), ("0", "39", "10000", "10001", *_ODD_NUMBERS)),
        "hits": (("1", "2", "20"), _ODD_NUMBERS),
        "mask": (_MASKS[family], _ODD_ADDRESSES[family]),
        "length": (_LENGTHS, _ODD_LENGTHS),
        "byte": (_BYTES, _ODD_BYTES),
        "count": (
            ("0", "10:20", ":5", "100:", "7:7", "0:18446744073709551615"),
            ("0:18446744073709551616", "9:5", "1:2:3", "-1:5", "5:5", "0x10:020", ":", "1-2", *_ODD_NUMBERS),
        ),
        "counted": (("packets", "bytes", "avgpkt"), ("", "Packets", "packet", "avg")),
        "counted-way": (("original", "reply", "both"), ("", "ORIGINAL", "orig", "src")),
        "network-of": (_ADDRESSES[family], _ODD_ADDRESSES[family]),
        "balance": (
            ("0:1", "5:9", "0:65534", "7:"),
            ("5:5", "9:5", "5", ":", ":5", "0:65535", "2:1", "0x1:0x3", "1:2:3", "-1:5", "1-2", ""),
        ),
        "place": (("0", "20", "28", "40", "0x20", "65535"), ("65536", "-1", "1:2", *_ODD_NUMBERS)),
        "search": (("bm", "kmp"), ("", "fsm", "BM", "none")),
        "pattern": (("GET", "a b", "x" * 128, "|41|"), ("", "x" * 129)),
        "coded-text": (
            ("|474554|", "GET|0d 0a|", "a|00|b", "|00 ff|", "\\\\|41|"),
            ("", "|", "|4|", "|41", "|4g|", "|", "|41\\|", "x" * 129),
        ),
        "hops": (
            ("fd00::1", "fd00::1,::", "::1,fd00::2,fd00::3"),
            ("", ",", "fd00::1,", "10.0.0.1", "fd00::1/64", ",".join(["::"] * 17)),
        ),
        "rt": (("0", "8", "0x18", "010", "256"), ("4294967295", "4294967296", "1:2", *_ODD_NUMBERS)),
        "processor": (("0", "1", "0x2", "010"), ("4294967295", "4294967296", "0:1", "0,1", *_ODD_NUMBERS)),
        "hop-options": (
            ("1", "5:2", "1:4,30:12", "0,0,1:3", "300:3", "0x1:255", "5:2,7"),
            ("0:3", "", ",", "4:", "x", "1:2:3", "4294967296", ",".join(["1"] * 17)),
        ),
        "headers": (
            ("hop", "hop-by-hop,dst", "ipv6-route", "frag,esp", "none", "protocol", "0,60", "hop,,dst,"),
            (
                *("ah", "auth,hop", "ip", "proto", "HOP", "", ",", "00", "1", "255", "256", "ipv6-icmp"),
                "hop dst",
            ),
        ),
        "group-of-devices": (
            ("0", "default", "7", "0x10/0xf0", "010"),
            (
                *("1/", "/1", "1/0", "x", "4294967295", "4294967296", "-1", "1/0x1ffffffff", "1/2x", "1:2"),
                *_ODD_NUMBERS,
            ),
        ),
        "segments": (("0", "1:255", ":3", "2:", "5:4"), ("4294967295", "0:4294967296", "1:2:3", "", "x")),
        "index": (("0", "0x100", ":9", "5:", "7:5", "70000"), ("4294967296", "-1", "1:2:3", "", "x")),
        "ecn": (("0", "3", "0x2"), ("4", "256", *_ODD_NUMBERS)),
        "dscp": (_DSCPS, _ODD_DSCPS),
        "dscp-class": (_CLASSES, _ODD_CLASSES),
        "tos": (_TOSES, _ODD_TOSES),
        "mac": (_MACS, _ODD_MACS),
        "packet-type": (_PACKET_TYPES, _ODD_PACKET_TYPES),
        "time-of-day": (_TIMES, _ODD_TIMES),
        "date": (_DATES, _ODD_DATES),
        "weekdays": (_WEEKDAYS, _ODD_WEEKDAYS),
        "monthdays": (_MONTHDAYS, _ODD_MONTHDAYS),
    }
