"""The constants of nftables tables that separate the kinds of services."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from nfparity.assess.node.nativetests import NativeTests, native_tests
from translate.ir import Family, Interval, parse_address
from translate.nftlisting import Listing, read_listing

SADDR: Any = {"payload": {"protocol": "ip", "field": "saddr"}}
DADDR: Any = {"payload": {"protocol": "ip", "field": "daddr"}}
DADDR6: Any = {"payload": {"protocol": "ip6", "field": "daddr"}}
DPORT: Any = {"payload": {"protocol": "tcp", "field": "dport"}}
ORIGINAL: Any = {"ct": {"key": "ip daddr", "dir": "original"}}
MARK: Any = {"meta": {"key": "mark"}}
FIB: Any = {"fib": {"result": "type", "flags": ["daddr"]}}
DROP: Any = {"drop": None}


def match(left: Any, right: Any, op: str = "==") -> Any:
    return {"match": {"op": op, "left": left, "right": right}}


def prefix(address: str, length: int) -> Any:
    return {"prefix": {"addr": address, "len": length}}


def listing(*statements: Any, sets: Iterable[Any] = ()) -> Listing:
    place = {"family": "inet", "table": "t"}
    base = {"name": "c", "type": "filter", "hook": "forward", "prio": 0, "policy": "accept"}
    objects = [
        {"table": {"family": "inet", "name": "t"}},
        {"chain": place | base},
        *({kind: place | one} for each in sets for kind, one in each.items()),
        {"rule": place | {"chain": "c", "expr": list(statements)}},
    ]
    return read_listing(json.dumps({"nftables": objects}), name="inet t")


def constants_of(*statements: Any, sets: Iterable[Any] = (), family: Family = Family.IP) -> NativeTests:
    return native_tests([listing(*statements, sets=sets)], family)


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


def points(*texts: str) -> tuple[Interval, ...]:
    return tuple(Interval.point(ip(text)) for text in texts)


A, B = "10.96.0.10", "10.96.0.20"
NETWORK = Interval.prefix(ip("10.96.0.0"), 27, 32)


@pytest.mark.parametrize(
    ("left", "right", "op", "wanted"),
    [
        (DADDR, A, "==", points(A)),
        (SADDR, A, "!=", points(A)),
        (ORIGINAL, A, "==", points(A)),
        (DADDR, prefix("10.96.0.0", 27), "==", (NETWORK,)),
        (DADDR, {"range": [A, B]}, "==", (Interval(ip(A), ip(B)),)),
        (DADDR, {"set": [A, {"elem": {"val": B, "timeout": 5}}]}, "==", points(A, B)),
        (DADDR, {"set": A}, "==", points(A)),
        (DADDR6, "2001:db8::1", "==", ()),
    ],
)
def test_constants_of_addresses(left: Any, right: Any, op: str, wanted: tuple[Interval, ...]) -> None:
    found = constants_of(match(left, right, op), DROP)
    assert found == NativeTests(addresses={None: wanted} if wanted else {})


def test_constants_of_ports() -> None:
    assert constants_of(match(DPORT, 80), DROP).ports == {None: (Interval.point(80),)}
    ranges = constants_of(match(DPORT, {"set": [{"range": [80, 90]}, 443]}), DROP)
    assert ranges.ports == {None: (Interval(80, 90), Interval.point(443))}
    assert Interval(0, 1023) in constants_of(match(DPORT, 1024, "<"), DROP).ports[None]
    assert Interval(0, 1024) in constants_of(match(DPORT, 1024, ">"), DROP).ports[None]


def test_constants_of_joined_values_and_of_maps() -> None:
    joined = {"set": [{"concat": [A, 80]}, {"concat": [B, 443]}]}
    found = constants_of(match({"concat": [DADDR, DPORT]}, joined), DROP)
    assert found.addresses == {None: points(A, B)}
    assert found.ports == {None: (Interval.point(80), Interval.point(443))}
    verdicts = {"set": [[A, {"accept": None}], [B, {"drop": None}]]}
    assert constants_of({"vmap": {"key": DADDR, "data": verdicts}}).addresses == {None: points(A, B)}
    marks = {"map": {"key": DADDR, "data": {"set": [[A, 7]]}}}
    assert constants_of({"mangle": {"key": MARK, "value": marks}}).addresses == {None: points(A)}


def test_elements_of_named_sets_and_maps() -> None:
    blocked = {"set": {"name": "s", "type": "ipv4_addr", "elem": [A, B]}}
    assert constants_of(match(DADDR, "@s"), DROP, sets=[blocked]).addresses == {None: points(A, B)}
    assert not constants_of(match(DPORT, 80), DROP, sets=[blocked]).addresses
    verdicts = {"map": {"name": "m", "type": "ipv4_addr", "map": "verdict", "elem": [[A, DROP]]}}
    assert constants_of({"vmap": {"key": DADDR, "data": "@m"}}, sets=[verdicts]).addresses == {
        None: points(A)
    }


def test_targets_of_nat_count() -> None:
    found = constants_of({"dnat": {"family": "ip", "addr": A, "port": 8080}})
    assert found == NativeTests(addresses={None: points(A)}, ports={None: (Interval.point(8080),)})
    chosen = {"map": {"key": {"numgen": {"mode": "random", "mod": 2}}, "data": {"set": [[0, A], [1, B]]}}}
    assert constants_of({"dnat": {"family": "ip", "addr": chosen}}).addresses == {None: points(A, B)}


def test_masked_values_have_constants_of_their_own() -> None:
    found = constants_of(match({"&": [DADDR, "0.0.0.255"]}, "0.0.0.10"), DROP)
    assert found == NativeTests(addresses={255: (Interval.point(10),)})


def test_what_packets_of_a_class_have_in_common_needs_no_constant() -> None:
    found = constants_of(
        match({"meta": {"key": "iifname"}}, "eth0"),
        match({"&": [MARK, 4]}, 4),
        match({"ct": {"key": "state"}}, ["established", "related"], "in"),
        match({"payload": {"protocol": "ip", "field": "protocol"}}, "icmp"),
        {"limit": {"rate": 5, "per": "second"}},
        {"mangle": {"key": MARK, "value": {"|": [MARK, 8]}}},
    )
    assert found == NativeTests(ports={None: (Interval.point(8),)})


def test_lookups_of_routes_are_noted() -> None:
    assert constants_of(match(FIB, "local"), DROP) == NativeTests(routes=True)


@pytest.mark.parametrize(
    "statement",
    [
        match({"payload": {"base": "nh", "offset": 128, "len": 32}}, 1),
        match({"jhash": {"mod": 2, "expr": SADDR}}, 0),
        match({"payload": {"protocol": "ip", "field": "checksum"}}, 1),
        match({"numgen": {"mode": "inc", "mod": 2}}, 0),
        match({"|": [DADDR, "0.0.0.1"]}, A),
        match(DADDR, "example.org"),
        match(DPORT, 3, "in"),
        {"mangle": {"key": MARK, "value": DADDR}},
        {"snat": {"family": "ip", "addr": {"range": [A, B]}}},
        {"dnat": {"family": "ip", "addr": {"map": {"key": DADDR, "data": {"set": [[A, prefix(B, 30)]]}}}}},
        {"dnat": {"family": "ip", "addr": A, "flags": ["netmap"]}},
        {"dup": {"addr": A}},
        {"unheard of": None},
        {"vmap": None},
    ],
)
def test_a_table_whose_constants_are_not_known_is_named(statement: Any) -> None:
    (unreadable,) = constants_of(statement).unreadable
    assert unreadable[0] == "inet t"
    (note,) = constants_of(statement).notes
    assert "table inet t treats alike" in note


def test_a_set_may_be_filled_by_a_value_but_not_by_a_masked_one() -> None:
    filled = {"set": {"name": "s", "type": "ipv4_addr", "size": 100, "flags": ["dynamic"]}}
    plain = {"set": {"op": "add", "elem": SADDR, "set": "@s"}}
    masked = {"set": {"op": "add", "elem": {"&": [SADDR, "255.255.255.0"]}, "set": "@s"}}
    assert not constants_of(plain, sets=[filled]).unreadable
    assert constants_of(masked, sets=[filled]).unreadable


def test_a_table_in_text_form_is_unreadable() -> None:
    table = read_listing("table ip t {\n\tchain c {\n\t}\n}\n", name="ip t")
    assert native_tests([table], Family.IP).unreadable


def test_constants_are_those_of_the_family() -> None:
    address = parse_address(Family.IP6, "2001:db8::1")
    statements = (match(DADDR6, {"set": ["2001:db8::1", prefix("::", 96)]}), DROP)
    found = constants_of(*statements, family=Family.IP6).addresses
    assert found == {None: (Interval.point(address), Interval(0, (1 << 32) - 1))}
