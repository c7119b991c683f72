"""DNAT to ports that are counted from another one, as a lookup where each port has one new port."""

from __future__ import annotations

import pytest

from translate.ir import Apply, Dnat, Field, Interval, Lookup, LoweredChain, Program
from translate.nft.legalise.shifts import counted_ports, spelled_out
from translate.passes import lower
from translate.passes.inventory import Inventory
from translate.read import read_ruleset


def program(*rules: str, level: int = 0) -> Program:
    text = "*nat\n:PREROUTING ACCEPT [0:0]\n" + "".join(f"-A PREROUTING {r}\n" for r in rules) + "COMMIT\n"
    return lower(read_ruleset(text.encode(), name="rules"), level=level)


def statement(rule: str) -> Apply:
    (chain,) = (c for c in program(rule).chains if isinstance(c, LoweredChain) and c.statements)
    (each,) = chain.statements
    assert isinstance(each, Apply)
    return each


@pytest.mark.parametrize(
    ("dports", "to", "ports"),
    [
        ("--dport 8000:8002", "10.0.0.1:5000-5002/8000", {8000: 5000, 8001: 5001, 8002: 5002}),
        ("--dport 5000:5001", "10.0.0.1:5000-5002/5000", {5000: 5000, 5001: 5001}),
        ("--dport 9000:9001", "10.0.0.1:7000-7009/9001", {9000: 7005, 9001: 7000}),
        ("--dport 0", "10.0.0.1:1000-1003/65535", {0: 1001}),
        ("-m multiport --dports 80,90:91", "10.0.0.1:1-100/80", {80: 1, 90: 11, 91: 12}),
    ],
)
def test_each_port_has_its_target(dports: str, to: str, ports: dict[int, int]) -> None:
    rule = statement(f"-d 10.96.0.1 -p tcp {dports} -j DNAT --to-destination {to}")
    lookup = spelled_out(rule)
    assert isinstance(lookup, Lookup)
    assert lookup.fields == (Field.DPORT,)
    seen = {}
    for entry in lookup.entries:
        (key,), (action,) = entry.key, entry.actions
        assert isinstance(key, Interval)
        assert isinstance(action, Dnat)
        assert action.ports.base is None
        assert action.ports.interval is not None
        seen[key.low] = action.ports.interval.low
    assert seen == ports
    assert len(lookup.tests) == len(rule.tests) - 1
    inventory = Inventory.of(program(f"-p tcp {dports} -j DNAT --to-destination {to}"))
    assert len(list(counted_ports(inventory))) == 1


@pytest.mark.parametrize(
    "rule",
    [
        "-p tcp --dport 8000:8003 -j DNAT --to-destination 10.0.0.1:5000-5002/8000",
        "-p tcp -j DNAT --to-destination 10.0.0.1:5000-5002/8000",
        "-p tcp ! --dport 8000 -j DNAT --to-destination 10.0.0.1:1-65535/8000",
        "-p tcp --dport 8000:8001 -j DNAT --to-destination 10.0.0.1-10.0.0.2:5000-5002/8000",
        "-p tcp --dport 8000:8001 -j DNAT --to-destination 10.0.0.1:5000-5002/8000 --random",
        "-p tcp --dport 0:5000 -j DNAT --to-destination 10.0.0.1:1-65535/8000",
        "-p icmp -j DNAT --to-destination 10.0.0.1:77-99/5",
    ],
)
def test_what_a_map_cannot_say_stays(rule: str) -> None:
    each = statement(rule)
    assert spelled_out(each) is each


@pytest.mark.parametrize(("last", "spelled"), [(8001, True), (8003, True), (8004, False)])
def test_the_entries_of_a_rule_are_taken_together(last: int, *, spelled: bool) -> None:
    rules = [
        f"-d 10.96.0.{n}/32 -p tcp -m tcp --dport 8000:{last}"
        f" -j DNAT --to-destination 10.0.0.{n}:5000-5003/8000"
        for n in range(1, 9)
    ]
    made = program(*rules, level=2)
    (chain,) = (c for c in made.chains if c.statements)
    (statement,) = chain.statements
    assert isinstance(statement, Lookup)
    lookup = spelled_out(statement)
    assert isinstance(lookup, Lookup)
    counted = [
        e for e in lookup.entries for a in e.actions if isinstance(a, Dnat) and a.ports.base is not None
    ]
    assert bool(counted) is not spelled
    if spelled:
        assert len(lookup.entries) == 8 * (last - 7999)
    assert len(set(counted_ports(Inventory.of(made)))) == 8
