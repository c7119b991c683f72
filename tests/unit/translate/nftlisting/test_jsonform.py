"""The output of ``nft -j`` becomes commands that libnftables takes back, or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from translate.errors import ParseError
from translate.nftlisting import Form, GivenSet, read_listing

A = {"family": "ip", "table": "a"}
SADDR = {"payload": {"protocol": "ip", "field": "saddr"}}


def text_of(*entries: object) -> str:
    return json.dumps({"nftables": [{"metainfo": {"version": "1.0.6"}}, *entries]})


def listed(*entries: object) -> list[tuple[Form, list[Any]]]:
    scripts = read_listing(text_of(*entries), name="x.json").scripts
    return [
        (
            script.form,
            json.loads(script.text)["nftables"] if script.form is Form.JSON else script.text.splitlines(),
        )
        for script in scripts
    ]


def test_chains_come_before_maps_that_name_them_and_handles_are_dropped() -> None:
    element = [["10.0.0.1", {"goto": {"target": "c"}}]]
    table = {"table": {"family": "ip", "name": "a", "handle": 1}}
    verdicts = {
        "map": {**A, "name": "m", "type": "ipv4_addr", "handle": 2, "map": "verdict", "elem": element}
    }
    rule = {"rule": {**A, "chain": "c", "handle": 4, "expr": [{"accept": None}]}}
    chain = {"chain": {**A, "name": "c", "handle": 3}}
    ((form, commands),) = listed(table, verdicts, rule, chain)
    assert form is Form.JSON
    assert commands == [
        {"add": {"table": {"family": "ip", "name": "a"}}},
        {"add": {"chain": {**A, "name": "c"}}},
        {"add": {"map": {**A, "name": "m", "type": "ipv4_addr", "map": "verdict", "elem": element}}},
        {"add": {"rule": {**A, "chain": "c", "expr": [{"accept": None}]}}},
    ]


def test_sets_that_packets_fill_are_declared_as_text_and_begin_empty() -> None:
    given = {"set": {**A, "name": "s", "type": "ipv4_addr", "size": 9, "flags": ["timeout"], "timeout": 60}}
    given["set"]["elem"] = [{"elem": {"val": "10.0.0.1", "expires": 5}}]
    given["set"]["comment"] = "seen"
    rule = {"rule": {**A, "chain": "c", "expr": [{"set": {"op": "update", "elem": SADDR, "set": "@s"}}]}}
    (form, commands), (_, rules) = listed(given, rule)
    assert form is Form.TEXT
    assert commands == [
        'add set ip a s { type ipv4_addr; flags timeout,dynamic; timeout 60s; size 9; comment "seen"; }'
    ]
    assert len(rules) == 1
    listing = read_listing(text_of(given, rule), name="x.json")
    assert listing.filled == (GivenSet("ip", "a", "s"),)


@pytest.mark.parametrize(
    ("data", "element", "declared"),
    [
        ("ipv4_addr . inet_service", {"concat": ["10.0.0.2", 80]}, "ipv4_addr : ipv4_addr . inet_service"),
        ("ipv4_addr", {"range": ["10.0.0.2", "10.0.0.9"]}, "ipv4_addr : interval ipv4_addr"),
    ],
)
def test_maps_whose_data_json_cannot_declare(data: str, element: object, declared: str) -> None:
    entry = {**A, "name": "m", "type": "ipv4_addr", "map": data, "elem": [["10.0.0.1", element]]}
    (_, declarations), (form, elements) = listed({"map": entry})
    assert declarations == [f"add map ip a m {{ type {declared}; }}"]
    assert form is Form.JSON
    assert elements == [{"add": {"element": {**A, "name": "m", "elem": [["10.0.0.1", element]]}}}]


def test_statements_of_a_set() -> None:
    stmt = [{"limit": {"rate": 5, "burst": 7, "per": "minute"}}, {"counter": None}]
    ((_, commands),) = listed({"set": {**A, "name": "s", "type": ["ipv4_addr", "mark"], "stmt": stmt}})
    about = "type ipv4_addr . mark; flags dynamic; limit rate 5/minute burst 7 packets; counter"
    assert commands == [f"add set ip a s {{ {about}; }}"]


@pytest.mark.parametrize(
    ("kind", "entry", "body"),
    [
        ("synproxy", {"mss": 1460, "wscale": 7, "flags": ["timestamp", "sack-perm"]},
         "mss 1460; wscale 7; timestamp sack-perm"),
        ("ct expectation", {"protocol": "tcp", "dport": 5, "timeout": 9000, "size": 2, "l3proto": "ip"},
         "protocol tcp; dport 5; timeout 9000ms; size 2; l3proto ip"),
        ("ct timeout", {"protocol": "tcp", "l3proto": "ip", "policy": {"established": 9, "close": 4}},
         "protocol tcp; l3proto ip; policy = { established : 9, close : 4 }"),
    ],
)  # fmt: skip
def test_objects_that_json_loses_are_text(kind: str, entry: dict[str, object], body: str) -> None:
    ((form, commands),) = listed({kind: {**A, "name": "o", **entry}})
    assert form is Form.TEXT
    assert commands == [f"add {kind} ip a o {{ {body}; }}"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rule": {**A, "chain": "c", "handle": 7, "expr": [{"xt": {"type": "match", "name": "recent"}}]}},
         "rule ip a c handle 7: a rule of iptables-nft, .* iptables-nft-save"),
        ({"rule": {**A, "chain": "c", "expr": ["update @m { ip saddr : tcp dport }"]}},
         "this has no JSON form: update @m"),
        ({"rule": {**A, "chain": "c", "expr": [{"match": {"right": {"set": [{"range": ["", ""]}]}}}]}},
         "nft has lost the names of interfaces"),
        ({"rule": {**A, "chain": "c", "expr": [{"vmap": {"data": {"prefix": {"addr": "", "len": 8}}}}]}},
         "nft has lost the names of interfaces"),
        ({"map": {**A, "name": "n", "type": "integer", "map": "verdict"}},
         "map ip a n: one of its types is an integer .* use the text form"),
        ({"chain": {"family": "netdev", "table": "a", "name": "c", "hook": "ingress"}},
         "JSON does not name the device"),
        ({"map": {**A, "name": "m", "type": "mark", "map": "ipv4_addr . mark", "elem": [["*", 1]]}},
         "an element for all other keys"),
        ({"table": {"family": "ip", "name": "a", "flags": "dormant"}}, "prints its flags wrongly"),
        ({"chain": {"family": "ip"}}, "the object does not name its family and table"),
        ({"flush": {"table": {"family": "ip", "name": "a"}}}, "'flush', which is not part of a ruleset"),
    ],
)  # fmt: skip
def test_what_json_has_lost_is_refused(entry: object, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read_listing(text_of(entry), name="x.json")


@pytest.mark.parametrize("text", ['{"nftables": [{"table": 5}]}', '{"rules": []}', '{"nftables": [{}]}'])
def test_json_that_nft_does_not_print_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match=r"x\.json:1:[0-9]+: expected an object.*nft -j list ruleset prints"):
        read_listing(text, name="x.json")


def test_json_that_ends_in_the_middle_is_refused_at_its_place() -> None:
    with pytest.raises(ParseError, match=r"x\.json:1:34: not JSON: expecting value; nft 1.0.6"):
        read_listing('{"nftables": [{"table": {"flags": \n', name="x.json")


def test_a_flush_of_everything_is_left_out() -> None:
    ((_, commands),) = listed({"flush": {"ruleset": None}}, {"add": {"table": {"family": "ip", "name": "a"}}})
    assert commands == [{"add": {"table": {"family": "ip", "name": "a"}}}]


def test_tables_can_be_left_out_with_what_is_wrong_in_them() -> None:
    rule = {"rule": {**A, "chain": "c", "expr": [{"xt": {"type": "match", "name": "recent"}}]}}
    other = {"table": {"family": "ip6", "name": "a"}}
    listing = read_listing(
        text_of({"table": {"family": "ip", "name": "a"}}, rule, other), name="x", without={("ip", "a")}
    )
    assert [json.loads(command.text) for command in listing.commands] == [{"add": other}]


def test_rules_that_count_are_known() -> None:
    limit = {"limit": {"rate": 5, "per": "second"}}
    update = {"set": {"op": "update", "elem": SADDR, "set": "@s", "stmt": [limit]}}
    rules = [{"rule": {**A, "chain": "c", "expr": [one]}} for one in (limit, {"accept": None}, update)]
    assert len(read_listing(text_of(*rules), name="x.json").counting) == 2


@pytest.mark.parametrize(
    ("kind", "change", "place"),
    [
        ("set", {"type": 'ipv4_addr; } include "/etc/passwd'}, "type"),
        ("set", {"type": [1]}, "type"),
        ("set", {"name": 's { } ; include "/etc/passwd"; add set ip a b'}, "name"),
        ("set", {"table": "a b"}, "table"),
        ("set", {"family": "ip; include"}, "family"),
        ("set", {"flags": ["dynamic; include"]}, "flags"),
        ("set", {"flags": 5}, "flags"),
        ("set", {"timeout": '1s; include "/etc/passwd"; size 1'}, "timeout"),
        ("set", {"size": True}, "size"),
        ("set", {"policy": "memory; include"}, "policy"),
        ("set", {"comment": 'x"; include "/etc/passwd'}, "comment"),
        ("set", {"comment": ["x"]}, "comment"),
        ("set", {"elem": "10.0.0.1"}, "elem"),
        ("set", {"stmt": {"counter": None}}, "stmt"),
        ("set", {"stmt": [{"limit": {"rate": "5/second; include", "per": "day"}}]}, "rate"),
        ("set", {"stmt": [{"limit": {"rate": 5, "per": 'day; include "x"'}}]}, "per"),
        ("set", {"stmt": [{"limit": None}]}, "limit"),
        ("set", {"stmt": [{"quota": {"bytes": 5}}]}, "quota"),
        ("map", {"map": "verdict; include"}, "map"),
        ("map", {"map": 7}, "map"),
        ("synproxy", {"mss": "1; include"}, "mss"),
        ("synproxy", {"flags": [{}]}, "flags"),
        ("ct expectation", {"dport": "5; include"}, "dport"),
        ("ct timeout", {"policy": {"a": "1; include"}}, "policy"),
        ("ct timeout", {"policy": {"a; include": 1}}, "policy"),
        ("rule", {"chain": {}}, "chain"),
        ("chain", {"dev": [1]}, "dev"),
        ("element", {"name": 5}, "name"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(
    kind: str, change: dict[str, object], place: str
) -> None:
    usual = {"type": "ipv4_addr", "map": "ipv4_addr"} if kind in ("set", "map") else {}
    entry = {**A, "name": "s", "chain": "c", "expr": [], **usual, **change}
    text = json.dumps({"nftables": [{kind: entry}]}, indent=1)
    with pytest.raises(ParseError) as caught:
        read_listing(text, name="x.json")
    (found, *_) = caught.value.diagnostics
    assert found.origin.text.strip().startswith(f'"{place}"'), found.render()
    assert found.origin.text[found.origin.column - 1] == '"'


def test_many_faults_are_told_quickly() -> None:
    rule = {"rule": {**A, "chain": "c", "expr": [{"xt": {"type": "match", "name": "recent"}}]}}
    with pytest.raises(ParseError) as caught:
        read_listing(text_of(*[rule] * 5000), name="x.json")
    assert len(caught.value.diagnostics) == 50


def test_a_flag_that_is_alone() -> None:
    """nft 1.1 prints no list then."""
    ((_, commands),) = listed({"set": {**A, "name": "s", "type": "ipv4_addr", "flags": "dynamic"}})
    assert commands == ["add set ip a s { type ipv4_addr; flags dynamic; }"]
