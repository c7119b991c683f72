"""Drift planted in 35 places of a node's rules, one after the other: each is reported, and no other."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from backends.replay.worker import Worker
from backends.testbed.command import find_tool, run
from nfparity.capture.node import capture_node
from nfparity.migrate.state import owned
from nfparity.watch import compare_states, states_of
from nfparity.watch.table_state import TableState
from tests.lab.traffic.host import Host, Request, Start
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset

TRANSLATED = """\
*nat
:PREROUTING ACCEPT [0:0]
:S1 - [0:0]
:S2 - [0:0]
-A PREROUTING -d 10.96.0.1/32 -p tcp -m tcp --dport 80 -j S1
-A PREROUTING -d 10.96.0.2/32 -p tcp -m tcp --dport 80 -j S2
-A S1 -p tcp -m tcp -j DNAT --to-destination 10.244.0.1:80
-A S2 -p tcp -m tcp -j DNAT --to-destination 10.244.0.2:80
COMMIT
*filter
:INPUT DROP [0:0]
-A INPUT -s 192.0.2.0/24 -j ACCEPT
-A INPUT -s 198.51.100.0/24 -j REJECT
COMMIT
"""
LEGACY = """\
*mangle
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:MARKS - [0:0]
-A FORWARD -j MARKS
-A MARKS -p tcp -m tcp --dport 22 -m comment --comment "ssh" -j MARK --set-xmark 0x1/0x1
-A MARKS -p udp -m udp --dport 53 -j MARK --set-xmark 0x2/0x2
COMMIT
"""
SIX = """\
*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -p ipv6-icmp -j ACCEPT
-A INPUT -s fd00::/8 -j DROP
COMMIT
"""
OTHERS = """\
table inet firewall {
	counter seen { }
	limit slow { rate 10/second burst 5 packets; }
	set blocked {
		type ipv4_addr
		flags interval
		elements = { 192.0.2.0/25 }
	}
	set guests {
		type ipv4_addr
		flags dynamic,timeout
		timeout 1h
	}
	map ports {
		type inet_service : verdict
		elements = { 22 : accept, 23 : drop }
	}
	map targets {
		type ipv4_addr : ipv4_addr
		elements = { 192.0.2.1 : 10.0.0.1 }
	}
	chain input {
		type filter hook input priority 10; policy accept;
		ip saddr @blocked counter drop
		limit name "slow" accept
		tcp dport vmap @ports
		update @guests { ip saddr }
	}
	chain spare {
		accept
	}
}
table ip kube-proxy {
	map service-ips {
		type ipv4_addr . inet_proto . inet_service : verdict
		elements = { 10.96.0.1 . tcp . 443 : goto service-a }
	}
	chain services {
		ip daddr . meta l4proto . th dport vmap @service-ips
	}
	chain service-a {
		meta l4proto tcp dnat to 10.0.0.2:6443
	}
	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		jump services
	}
}
"""
IPSETS = """\
create nets hash:net family inet
add nets 192.0.2.0/24
create ports bitmap:port range 1-1024
add ports 80
create all list:set size 8
add all nets
"""

OURS, WALL, KUBE = "nft ip nfparity", "nft inet firewall", "nft ip kube-proxy"
MANGLE, SIX_FILTER = "iptables-legacy mangle", "ip6tables-nft filter"

SWAP = (
    "nft delete element inet firewall {map} '{{ {old} }}'; nft add element inet firewall {map} '{{ {new} }}'"
)

PLANTED: tuple[tuple[str, str, str], ...] = (
    # The translation that nfparity has loaded.
    ("nft add rule ip nfparity filter_INPUT counter accept", OURS, "extra: chain filter_INPUT, at its end"),
    ("nft insert rule ip nfparity filter_INPUT drop", OURS, "extra: chain filter_INPUT, before rule 1"),
    ("nft add chain ip nfparity mine", OURS, "extra: chain mine"),
    ("nft add rule ip nfparity mine drop", OURS, "extra: chain mine, at its end"),
    ("nft add chain ip nfparity filter_INPUT '{ policy accept; }'", OURS, "changed: chain filter_INPUT"),
    ("nft add set ip nfparity more '{ type mark; }'", OURS, "extra: set or map more"),
    ("nft delete table ip nfparity", OURS, "missing: the table"),
    # A firewall's table.
    (
        "nft add element inet firewall blocked '{ 203.0.113.0/24 }'",
        WALL,
        "extra: set or map blocked, element 203.0.113.0/24",
    ),
    (
        "nft delete element inet firewall blocked '{ 192.0.2.0/25 }'",
        WALL,
        "missing: set or map blocked, element 192.0.2.0/25",
    ),
    ("nft add element inet firewall ports '{ 80 : accept }'", WALL, "extra: set or map ports, element 80"),
    (
        SWAP.format(map="ports", old="23 : drop", new="23 : accept"),
        WALL,
        "changed: set or map ports, element 23: drop became accept",
    ),
    (
        SWAP.format(map="targets", old="192.0.2.1", new="192.0.2.1 : 10.0.0.9"),
        WALL,
        "changed: set or map targets, element 192.0.2.1: 10.0.0.1 became 10.0.0.9",
    ),
    ("nft add counter inet firewall more", WALL, "extra: counter more"),
    ("nft add rule inet firewall input index 0 accept", WALL, "extra: chain input, before rule 2"),
    ("nft flush chain inet firewall spare", WALL, "missing: chain spare, rule 1"),
    ("nft delete chain inet firewall spare", WALL, "missing: chain spare"),
    (
        "nft add chain inet firewall late '{ type filter hook forward priority 20; policy drop; }'",
        WALL,
        "extra: chain late",
    ),
    # kube-proxy's table.
    (
        "nft add element ip kube-proxy service-ips '{ 10.96.0.9 . udp . 53 : goto service-a }'",
        KUBE,
        "extra: set or map service-ips, element 10.96.0.9 . udp . 53: goto service-a",
    ),
    ("nft add rule ip kube-proxy service-a drop", KUBE, "extra: chain service-a, at its end"),
    ("nft flush chain ip kube-proxy nat-prerouting", KUBE, "missing: chain nat-prerouting, rule 1"),
    # A table of nobody.
    ("nft add table bridge new", "nft bridge new", "extra: the table"),
    # iptables of both variants and families.
    ("iptables-legacy -t mangle -A MARKS -j RETURN", MANGLE, "extra: chain MARKS, at its end: -j RETURN"),
    ("iptables-legacy -t mangle -D MARKS 1", MANGLE, "missing: chain MARKS, rule 1: -p tcp"),
    (
        "iptables-legacy -t mangle -R MARKS 1 -p udp --dport 53 -j MARK --set-xmark 0x4/0x4",
        MANGLE,
        "changed: chain MARKS, rule 1: -p udp -m udp --dport 53 -j MARK --set-xmark 0x2/0x2 became",
    ),
    ("iptables-legacy -t mangle -P FORWARD DROP", MANGLE, "changed: chain FORWARD: policy ACCEPT became"),
    ("iptables-legacy -t mangle -N MORE", MANGLE, "extra: chain MORE"),
    ("ip6tables-nft -I INPUT -p tcp --dport 22 -j DROP", SIX_FILTER, "extra: chain INPUT, before rule 1"),
    ("ip6tables-nft -D INPUT -s fd00::/8 -j DROP", SIX_FILTER, "missing: chain INPUT, rule 3: -s fd00::/8"),
    ("ip6tables-nft -P OUTPUT DROP", SIX_FILTER, "changed: chain OUTPUT: policy ACCEPT became"),
    ("ip6tables-nft -t raw -A OUTPUT -p udp -j NOTRACK", "ip6tables-nft raw", "extra: the table"),
    # ipsets.
    (
        "ipset add nets 198.51.100.0/24 nomatch",
        "ipset nets",
        "extra: set or map nets, element 198.51.100.0/24",
    ),
    ("ipset del ports 80", "ipset ports", "missing: set or map ports, element 80"),
    ("ipset create late hash:ip", "ipset late", "extra: the table"),
    ("ipset del all nets", "ipset all", "missing: set or map all, element nets"),
    ("ipset destroy all", "ipset all", "missing: the table"),
)
HARMLESS = (
    "nft add element inet firewall guests '{ 192.0.2.77 }'",
    "nft reset counters",
    "iptables-legacy -t mangle -Z",
)


@dataclass(frozen=True)
class Load(Request):
    """Loads all rules."""

    def run(self, host: Host) -> None:
        owned.load(emit(lower(read_ruleset(TRANSLATED.encode(), name="rules"), level=2)).text)
        for command, text in (
            (("ip", "link", "set", "lo", "up"), ""),
            (("nft", "-f", "-"), OTHERS),
            (("iptables-legacy-restore",), LEGACY),
            (("ip6tables-nft-restore",), SIX),
            (("ipset", "restore"), IPSETS),
        ):
            done = run(command, text)
            assert not done.returncode, done.stderr


@dataclass(frozen=True)
class Plant(Request):
    """Runs a command of the shell; returns the differences since the last request, by table."""

    command: str

    def run(self, host: Host) -> tuple[tuple[str, str], ...]:
        done = run(("sh", "-c", self.command))
        assert not done.returncode, f"{self.command}: {done.stderr}"
        files, _ = capture_node(now=time.time())
        now = states_of(files, name="this node")
        before: dict[str, TableState] = host.kept.get("states", now)
        host.kept["states"] = now
        tables = compare_states(before, now)
        return tuple((table.table, change.line()) for table in tables for change in table.drift)


@pytest.fixture(scope="module")
def node() -> Iterator[Worker]:
    for tool in ("iptables-legacy", "ip6tables-nft", "ipset", "nft"):
        if find_tool(tool) is None:
            pytest.skip(f"needs {tool}")
    with Worker(Start("node", {}, (Load, Plant))) as worker:
        worker.ask(Load())
        assert worker.ask(Plant("true")) == ()
        yield worker


def test_each_place_is_reported(node: Worker) -> None:
    assert len(PLANTED) == 35
    for command in HARMLESS:
        assert node.ask(Plant(command)) == (), command
    for command, table, place in PLANTED:
        changes = node.ask(Plant(command))
        assert [name for name, _ in changes] == [table], command
        assert changes[0][1].startswith(place), command
