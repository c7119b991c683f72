from __future__ import annotations

import pytest

from backends.nftables.connections import gives_source_ports, sets_zones


@pytest.mark.parametrize(
    ("rule", "gives"),
    [
        ("oifname eth0 masquerade", False),
        ("oifname eth0 masquerade fully-random", False),
        ("meta l4proto tcp masquerade to :80-81", True),
        ("meta l4proto udp snat to 192.0.2.1", False),
        ("meta l4proto udp snat to 192.0.2.1:4000", True),
        ("meta l4proto udp snat to 192.0.2.1-192.0.2.3:4000-4001 persistent", True),
        ("meta l4proto udp snat ip6 to [2001:db8::1]:4000", True),
        ("snat ip addr . port to ip saddr map @sources", True),
        ("snat ip to 192.0.2.1\n\t\tip daddr 10.0.0.1 dnat to 10.0.0.2:80", False),
    ],
)
def test_rules_that_give_source_ports(rule: str, gives: bool) -> None:
    assert gives_source_ports(f"\t\t{rule}\n") is gives


@pytest.mark.parametrize(
    ("rule", "sets"),
    [
        ("ct zone set 3", True),
        ("ct original zone set meta mark", True),
        ("ct zone 3 accept", False),
        ("notrack", False),
    ],
)
def test_rules_that_set_zones(rule: str, sets: bool) -> None:
    assert sets_zones(f"\t\t{rule}\n") is sets
