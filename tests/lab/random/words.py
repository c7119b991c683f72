"""The words of random rules: few addresses, ports and interfaces, so that rules match the same packets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from translate.ir import Family

__all__ = ["WORDS", "Words"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The words of one family's rules, in iptables' spelling.

    Addresses are those of the kind cluster's worker for IPv4, and of ``six/node.json`` for IPv6. ``hosts``
    are single addresses without a length, ``sources`` and ``targets`` are for SNAT and DNAT, ``strange`` are
    protocols without ports.
    """

    addresses: tuple[str, ...]
    ranges: tuple[str, ...]
    hosts: tuple[str, ...]
    interfaces: tuple[str, ...]
    types: tuple[str, ...]
    icmp: str
    icmp_match: str
    icmp_types: tuple[str, ...]
    strange: tuple[str, ...]
    rejects: tuple[str, ...]
    sources: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def family(self) -> Family:
        """The family of the rules."""
        return Family.IP if self is WORDS[Family.IP] else Family.IP6

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The addresses with a prefix length instead of a mask."""
        return tuple(a for a in self.addresses if len(a.partition("/")[2]) < 4)

    def with_port(self, address: str, port: str) -> str:
        """Return an address or a range of addresses with a port, in the form of NAT targets."""
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


WORDS: Final = {
    Family.IP: Words(
        addresses=(
            "10.244.0.3/32",
            "10.244.0.3/32",
            "10.244.0.4/32",
            "10.244.0.5/32",
            "10.244.0.4/31",
            "10.244.0.0/24",
            "10.244.0.0/16",
            "10.96.0.10/32",
            "10.96.0.1/32",
            "10.96.0.0/12",
            "172.18.0.2/32",
            "172.18.0.0/16",
            "172.18.0.0/255.255.0.254",
            "198.51.100.7/32",
            "127.0.0.0/8",
            "10.244.1.0/25",
        ),
        ranges=("10.244.0.3-10.244.0.5", "10.96.0.1-10.96.0.10", "10.244.0.4", "172.18.0.0-198.51.100.7"),
        hosts=("10.96.0.10", "10.96.0.1", "10.244.0.5"),
        interfaces=("eth0", "pod5", "dns3", "dns+", "pod+", "lo", "eth+", "e+", "nothing"),
        types=("LOCAL", "UNICAST", "BROADCAST", "MULTICAST", "UNSPEC"),
        icmp="icmp",
        icmp_match="-m icmp {}--icmp-type {}",
        icmp_types=("8", "0", "3", "3/1", "3/3", "any", "11/0", "8/0", "14", "10", "12"),
        strange=("47", "50", "89", "99"),
        rejects=(
            "icmp-net-unreachable",
            "icmp-host-unreachable",
            "icmp-proto-unreachable",
            "icmp-port-unreachable",
            "icmp-net-prohibited",
            "icmp-host-prohibited",
            "icmp-admin-prohibited",
        ),
        sources=("172.18.0.2", "10.244.0.1", "172.18.0.20-172.18.0.23"),
        targets=("10.244.0.3", "10.244.0.5", "10.244.0.3-10.244.0.5", "172.18.0.9"),
    ),
    Family.IP6: Words(
        addresses=(
            "fd00:1::3/128",
            "fd00:1::3/128",
            "fd00:1::/64",
            "fd00:2::5/128",
            "fd00:2::4/127",
            "fd00:2::/64",
            "fd00::/16",
            "fd00:96::a/128",
            "fd00:96::/112",
            "2001:db8::1/128",
            "2001:db8::/32",
            "2001:db8:e::1/128",
            "fe80::/10",
            "ff02::/16",
            "::1/128",
            "::/96",
            "::ffff:10.0.0.1/128",
            "2001:db8::/ffff:ffff::fffe",
        ),
        ranges=("fd00:1::3-fd00:2::5", "fd00:96::1-fd00:96::a", "fd00:2::4", "2001:db8::-fd00:2::5"),
        hosts=("fd00:96::a", "fd00:96::1", "fd00:2::5"),
        interfaces=("west", "east", "up", "we+", "e+", "lo", "u+", "nothing"),
        types=("LOCAL",),
        icmp="ipv6-icmp",
        icmp_match="-m icmp6 {}--icmpv6-type {}",
        icmp_types=("128", "129", "1", "1/4", "2", "3/0", "128/0", "135", "136", "4/1"),
        strange=("47", "50", "59", "99"),
        rejects=(
            "icmp6-no-route",
            "icmp6-adm-prohibited",
            "icmp6-addr-unreachable",
            "icmp6-port-unreachable",
        ),
        sources=("2001:db8::1", "fd00:2::1", "2001:db8::20-2001:db8::23", "2001:db8::fffe-2001:db8::2:1"),
        targets=("fd00:2::5", "fd00:1::7", "fd00:2::5-fd00:2::7", "fd00:2::fff0-fd00:2::1:3:2"),
    ),
}
