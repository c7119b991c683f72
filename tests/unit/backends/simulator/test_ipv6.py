"""IPv6 in the simulator: what differs from IPv4 in routing, tracking, translation and answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, IcmpError, Reply, Send, Step
from backends.model.node import Address, node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from backends.simulator import simulate
from backends.simulator.routing.ip6 import Router6
from backends.simulator.routing.source_address import select_source
from translate.errors import InputError, UnsupportedError
from translate.ir import Family, Protocol, parse_address
from translate.read import read_ruleset

NODE = """{
  "interfaces": {"west": ["fd00:1::1/64"], "east": ["fd00:2::1/64", "fe80::2/64"], "up": ["2001:db8::1/64"]},
  "routes": [{"dst": "::/0", "via": "2001:db8::fe", "dev": "up"}],
  "sysctls": {%s}
}"""
POD, OUTSIDE, OWN = "fd00:1::9", "2001:db8:9::9", "2001:db8::1"


def ip(text: str) -> int:
    return parse_address(Family.IP6, text)


def packet(proto: int, src: str, dst: str, **fields: Any) -> Packet:
    return replace(Packet(family=Family.IP6, src=ip(src), dst=ip(dst), proto=proto), **fields)


def udp(src: str, dst: str, entry: str | None = "west", **fields: Any) -> Send:
    return Send(packet=packet(17, src, dst, **{"sport": 4000, "dport": 53, **fields}), entry=entry)


def icmp(src: str, dst: str, kind: int, entry: str | None = "west", **fields: Any) -> Send:
    given = {"icmp_type": kind, "icmp_code": 0, **({"icmp_id": 7} if kind in (128, 129) else {}), **fields}
    return Send(packet=packet(Protocol.ICMPV6, src, dst, **given), entry=entry)


def run(rules: str, *steps: Step, sysctls: str = "") -> tuple[Outcome, ...]:
    tables: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, rules.splitlines())):
        table, _, rule = line.partition(": ")
        tables.setdefault(table, []).append(rule)
    hooks = {
        "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
        "filter": ("INPUT", "FORWARD", "OUTPUT"),
    }
    text = "".join(
        f"*{table}\n"
        + "".join(f":{h} ACCEPT [0:0]\n" for h in hooks[table])
        + "\n".join((*lines, "COMMIT\n"))
        for table, lines in tables.items()
    )
    job = Job(
        rules=read_ruleset(text.encode(), name="rules", family=Family.IP6),
        node=node_from_json(NODE % sysctls, name="node"),
    )
    (branch,) = simulate(job, Flow(id="test", steps=steps)).branches
    return branch.outcomes


def test_dnat_and_its_way_back() -> None:
    rules = "nat: -A PREROUTING -d fd00:96::a/128 -p udp -j DNAT --to-destination [fd00:2::5]:1053"
    there, back, error = run(rules, udp(POD, "fd00:96::a"), Reply(), IcmpError(type=1, code=4))
    assert (there.verdict, there.out, there.dst, there.dport) == (
        Verdict.FORWARD,
        "east",
        ip("fd00:2::5"),
        1053,
    )
    assert (back.src, back.sport, back.dst) == (ip("fd00:96::a"), 53, ip(POD))
    assert (error.verdict, error.out) == (Verdict.FORWARD, "east")
    assert error.quoted is not None
    assert (error.quoted.src, error.quoted.sport) == (ip("fd00:2::5"), 1053)


def test_masquerade_takes_the_source_for_the_destination_not_for_the_gateway() -> None:
    (there,) = run("nat: -A POSTROUTING -o up -j MASQUERADE", udp(POD, OUTSIDE))
    assert there.src == ip(OWN)


def test_redirect_keeps_to_the_device() -> None:
    (there,) = run("nat: -A PREROUTING -p udp -j REDIRECT --to-ports 99", udp(POD, OUTSIDE))
    assert (there.verdict, there.dst, there.dport) == (Verdict.LOCAL, ip("fd00:1::1"), 99)
    (there,) = run("nat: -A OUTPUT -p udp -j REDIRECT", udp(OWN, OUTSIDE, None))
    assert (there.verdict, there.dst) == (Verdict.LOCAL, 1)


@pytest.mark.parametrize("kind", [130, 131, 132, 133, 134, 135, 136, 143])
def test_discovery_is_not_tracked(kind: int) -> None:
    rules = "filter: -A INPUT -m conntrack --ctstate UNTRACKED -j DROP"
    (there,) = run(rules, icmp(POD, "fd00:1::1", kind))
    assert there.verdict is Verdict.DROP


def test_echoes_are_connections_and_other_messages_are_invalid() -> None:
    rules = """
        filter: -A INPUT -m conntrack --ctstate NEW -j ACCEPT
        filter: -A INPUT -j DROP"""
    assert run(rules, icmp(POD, "fd00:1::1", 128))[0].verdict is Verdict.LOCAL
    assert run(rules, icmp(POD, "fd00:1::1", 129))[0].verdict is Verdict.DROP
    assert run(rules, icmp(POD, "fd00:1::1", 200))[0].verdict is Verdict.DROP


@pytest.mark.parametrize(
    "kind",
    [
        "icmp6-no-route",
        "icmp6-adm-prohibited",
        "icmp6-addr-unreachable",
        "icmp6-port-unreachable",
        "icmp6-policy-fail",
        "icmp6-reject-route",
    ],
)
def test_kinds_of_reject(kind: str) -> None:
    (there,) = run(f"filter: -A FORWARD -j REJECT --reject-with {kind}", udp(POD, OUTSIDE))
    assert (there.verdict, there.reject_with) == (Verdict.REJECT, kind)


def test_what_is_not_answered() -> None:
    rules = "filter: -A FORWARD -j REJECT\nfilter: -A INPUT -j REJECT"
    quoted = packet(17, OUTSIDE, POD, sport=1, dport=2)
    for sent in (
        icmp(POD, OUTSIDE, 1, icmp_id=None, quoted=quoted),  # an error
        udp("::", OWN),  # from nobody
        udp(POD, "ff02::1"),  # to many
        udp(POD, OUTSIDE, bad_checksum=True),
        udp("fd00:1::", OUTSIDE),  # from an anycast address
    ):
        assert run(rules, sent)[0].verdict is Verdict.DROP
    assert run(rules, icmp(POD, OUTSIDE, 200))[0].reject_with == "icmp6-port-unreachable"


def test_what_the_stack_says_by_itself() -> None:
    assert run("", udp(POD, OUTSIDE, ttl=1))[0].reject_with == "icmp6-3-0"
    assert run("", udp("fe80::9", POD, "east"))[0].reject_with == "icmp6-1-2"
    assert run("", udp("::1", OUTSIDE))[0].verdict is Verdict.DROP
    assert run("", udp(POD, "::1"))[0].verdict is Verdict.DROP


def test_anycast_and_multicast_are_delivered_where_forwarding_joins_them() -> None:
    off = '"net.ipv6.conf.all.forwarding": "0"'
    assert run("", udp(POD, "fd00:2::"))[0].verdict is Verdict.LOCAL
    assert run("", udp(POD, "ff02::2"))[0].verdict is Verdict.LOCAL
    assert run("", udp(POD, "ff02::2"), sysctls=off)[0].verdict is Verdict.DROP
    assert run("", udp(POD, "fd00:2::"), sysctls=off)[0].verdict is Verdict.DROP
    assert run("", udp(POD, "ff02::1"), sysctls=off)[0].verdict is Verdict.LOCAL


def test_local_is_what_routes_say_and_anycast_is_not() -> None:
    rules = "filter: -A INPUT -m addrtype --dst-type LOCAL -j DROP"
    assert run(rules, udp(POD, OWN))[0].verdict is Verdict.DROP
    assert run(rules, udp(POD, "fd00:2::"))[0].verdict is Verdict.LOCAL
    limited = "filter: -A INPUT -m addrtype --dst-type LOCAL --limit-iface-in -j DROP"
    assert run(limited, udp(POD, OWN))[0].verdict is Verdict.LOCAL
    assert run(limited, udp(POD, "fd00:1::1"))[0].verdict is Verdict.DROP


def test_what_needs_an_interface_to_be_sent_is_refused() -> None:
    for dst, feature in (("ff02::1", "ipv6-multicast"), ("fe80::9", "ipv6-link-local")):
        with pytest.raises(UnsupportedError) as caught:
            run("", udp(OWN, dst, None))
        assert caught.value.refusals[0].feature == feature


@pytest.mark.parametrize(
    ("dst", "dev", "source"),
    [
        ("2001:db8:9::9", "b", "2001:db8::1"),  # the same label
        ("fd00:7::1", "b", "fd00:1::1"),
        ("fd00:2::9", "a", "fd00:1::1"),  # the interface counts more than the longest match
        ("2002:1::1", "b", "2001:db8::1"),
        ("fd00:1::1", "b", "fd00:1::1"),  # itself
        ("fe80::9", "b", "fe80::2"),  # the smallest scope that reaches
    ],
)
def test_source_selection(dst: str, dev: str, source: str) -> None:
    have = [("fd00:1::1", 64, "a"), ("fd00:2::1", 64, "c"), ("2001:db8::1", 64, "c"), ("fe80::2", 64, "b")]
    candidates = [(Address(Family.IP6, ip(text), length), name) for text, length, name in have]
    assert select_source(candidates, ip(dst), dev) == ip(source)


def test_no_candidate_no_source() -> None:
    assert select_source([], 1, "a") == 0


def test_a_flow_of_the_other_family_is_refused() -> None:
    four = Send(packet=Packet(family=Family.IP, src=1, dst=2, proto=17, sport=3, dport=4), entry="west")
    with pytest.raises(InputError, match="family of the rules, ip6"):
        run("", four)


@pytest.mark.parametrize("kind", [151, 152])
def test_nor_is_the_discovery_of_multicast_routers(kind: int) -> None:
    rules = "filter: -A INPUT -m conntrack --ctstate UNTRACKED -j DROP"
    assert run(rules, icmp(POD, "fd00:1::1", kind))[0].verdict is Verdict.DROP


def test_nothing_behind_the_header_is_invalid() -> None:
    rules = "filter: -A INPUT -m conntrack --ctstate INVALID -j DROP"
    none = Send(packet=packet(59, POD, "fd00:1::1"), entry="west")
    assert run(rules, none)[0].verdict is Verdict.DROP


# As Linux 6.1, 6.12 and 6.18 bind them.
@pytest.mark.parametrize(
    ("src", "dst", "bound"),
    [
        ("2001:db8:ffff::9", "2001:db8:1::7", "dead::68"),
        ("2001:db8:ffff::9", "2001:db8:1::8", "dead::8b"),
        ("fd00:244::9", "2001:4860::8", "dead::2"),
    ],
)
def test_an_address_of_a_dnat_range_follows_from_both_ends(src: str, dst: str, bound: str) -> None:
    rules = "nat: -A PREROUTING -j DNAT --to-destination dead::1-dead::ff"
    assert run(rules, udp(src, dst))[0].dst == ip(bound)


REACHES = {
    "2001:db8:9::9": "2001:db8::1",
    "fd00:1::9": "2001:db8::1",
    "fe80::9": "fe80::1",
    "fec0::9": None,
    "::a": "::5",
    "ff02::2": "fe80::1",
    "ff05::2": None,
    "ff0e::1": "2001:db8::1",
}


@pytest.mark.parametrize(("dst", "bound"), REACHES.items())
def test_redirect_binds_an_address_that_reaches_as_far(dst: str, bound: str | None) -> None:
    addresses = ["::ffff:10.0.0.1/128", "::5/128", "2001:db8::1/64", "fe80::1/64"]
    node = node_from_json(json.dumps({"interfaces": {"west": addresses}}), name="node")
    assert Router6(node).redirect_address("west", ip(dst)) == (0 if bound is None else ip(bound))
