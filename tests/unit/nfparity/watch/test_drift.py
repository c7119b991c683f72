"""Listings as ``nft -j list table`` prints them, and what differs in what they mean."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from nfparity.watch.drift import Change, drift
from nfparity.watch.table_state import TableState, read_listing
from translate.errors import MachineError

OWN = {"family": "ip", "table": "nfparity"}
LISTING: list[dict[str, Any]] = [
    {"metainfo": {"version": "1.0.6"}},
    {"table": {"family": "ip", "name": "nfparity", "handle": 2}},
    {"map": {**OWN, "name": "services", "type": ["ipv4_addr", "inet_service"], "handle": 3, "map": "verdict",
             "elem": [
                 [{"elem": {"val": {"concat": ["10.96.0.10", 53]}, "comment": "line 1"}},
                  {"jump": {"target": "one"}}],
                 [{"concat": ["10.96.0.1", 443]}, {"drop": None}],
             ]}},
    {"set": {**OWN, "name": "networks", "type": "ipv4_addr", "handle": 4, "flags": ["interval"],
             "elem": [{"prefix": {"addr": "10.0.0.0", "len": 8}}, {"range": ["192.0.2.1", "192.0.2.9"]}]}},
    {"set": {**OWN, "name": "clients", "type": "ipv4_addr", "handle": 5, "flags": ["timeout", "dynamic"],
             "elem": [{"elem": {"val": "192.0.2.1", "expires": 5}}]}},
    {"counter": {**OWN, "name": "drops", "handle": 6, "packets": 1, "bytes": 2}},
    {"chain": {**OWN, "name": "filter_INPUT", "handle": 7, "type": "filter", "hook": "input", "prio": 0,
               "policy": "drop"}},
    {"chain": {**OWN, "name": "one", "handle": 8}},
    {"rule": {**OWN, "chain": "filter_INPUT", "handle": 9, "comment": "line 2",
              "expr": [{"counter": {"packets": 5, "bytes": 6}}, {"accept": None}]}},
    {"rule": {**OWN, "chain": "one", "handle": 10, "expr": [{"drop": None}]}},
    {"rule": {**OWN, "chain": "one", "handle": 11, "expr": [{"return": None}]}},
]  # fmt: skip


def table_state(listing: list[dict[str, Any]]) -> TableState:
    return read_listing(json.dumps({"nftables": listing}))


def changed(at: int, **values: object) -> list[dict[str, Any]]:
    listing = copy.deepcopy(LISTING)
    next(iter(listing[at].values())).update(values)
    return listing


def lines(live: list[dict[str, Any]]) -> list[str]:
    return [one.line() for one in drift(table_state(LISTING), table_state(live))]


def test_what_changes_by_itself_is_no_difference() -> None:
    other = copy.deepcopy(LISTING)
    for one in other:
        for value in one.values():
            if "handle" in value:
                value["handle"] += 100
    other[2]["map"]["elem"].reverse()
    del other[2]["map"]["elem"][1][0]["elem"]["comment"]
    other[4]["set"]["elem"] = []
    other[5]["counter"]["packets"] = 9
    other[8]["rule"]["expr"][0]["counter"]["packets"] = 9
    del other[8]["rule"]["comment"]
    assert lines(other) == []


def test_a_meaning_comes_back_from_its_data() -> None:
    made = table_state(LISTING)
    assert TableState.from_data(json.loads(json.dumps(made.data()))) == made


@pytest.mark.parametrize(
    ("live", "said"),
    [
        (changed(1, flags="dormant"), "changed: flags of the table: none became dormant"),
        # nft 1.0.6 prints any text from its memory.
        (changed(1, flags="ip"), "changed: flags of the table: none became a flag that nft does not name"),
        (changed(6, policy="accept"), "changed: chain filter_INPUT: "),
        (changed(9, expr=[{"accept": None}]), 'changed: chain one, rule 1: [{"drop":null}] became [{"acc'),
        (LISTING[:9] + LISTING[10:], 'missing: chain one, rule 1: [{"drop":null}]'),
        ([*LISTING, LISTING[9]], 'extra: chain one, at its end: [{"drop":null}]'),
        ([*LISTING[:9], LISTING[8] | {}, *LISTING[9:]], "extra: chain filter_INPUT, at its end: "),
        ([*LISTING[:7], *LISTING[8:9]], "missing: chain one"),
        ([*LISTING, {"chain": {**OWN, "name": "new"}}], "extra: chain new"),
        (
            changed(2, elem=LISTING[2]["map"]["elem"][:1]),
            "missing: set or map services, element 10.96.0.1 . 443: drop",
        ),
        (
            changed(3, elem=[*LISTING[3]["set"]["elem"], "172.16.0.1"]),
            "extra: set or map networks, element 172.16.0.1",
        ),
        (changed(3, elem=LISTING[3]["set"]["elem"][:1]), "missing: set or map networks, element 192.0.2.1-"),
        (
            changed(
                2, elem=[[{"concat": ["10.96.0.10", 53]}, {"accept": None}], LISTING[2]["map"]["elem"][1]]
            ),
            "changed: set or map services, element 10.96.0.10 . 53: jump one became accept",
        ),
        (changed(4, flags=["timeout"]), "changed: set or map clients: "),
        (LISTING[:3] + LISTING[4:], "missing: set or map networks"),
        (LISTING[:5] + LISTING[6:], "missing: counter drops"),
    ],
)  # fmt: skip
def test_each_difference_is_named(live: list[dict[str, Any]], said: str) -> None:
    (line,) = lines(live)
    assert line.startswith(said)


def test_the_order_of_rules_matters() -> None:
    swapped = [*LISTING[:9], LISTING[10], LISTING[9]]
    found = drift(table_state(LISTING), table_state(swapped))
    assert {one.change for one in found} == {Change.MISSING, Change.EXTRA}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"nftables": [{}]}', '{"nftables": [{"chain": {}}]}'])
def test_what_is_no_listing(text: str) -> None:
    with pytest.raises(MachineError, match="is not a table"):
        read_listing(text)
