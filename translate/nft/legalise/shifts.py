"""DNAT with a port shift (``--to-destination A:5000-5002/8000``) as a lookup.

nftables has no base port for a shift (``nft_nat``). If a rule tests the destination port, each tested port
has one new port, and a map from old to new ports means the same. The new ports must differ: for two ports
that become the same port the kernel would try the next port of the range (``nf_nat_l4proto_unique_tuple``),
which a map cannot do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from translate.dataclass import replace
from translate.ir import (
    PORT_PROTOCOLS,
    Action,
    Apply,
    Dnat,
    Entry,
    Field,
    FieldTest,
    Interval,
    Lookup,
    Origin,
    Statement,
    Test,
    Value,
    alternatives,
)
from translate.nft.legalise.headers import transports
from translate.passes.inventory import Inventory

__all__ = ["counted_ports", "spelled_out"]

_MOST: Final = 4096
"""The greatest number of tested ports for which a rule becomes a map."""


def spelled_out(statement: Statement) -> Statement:
    """Return an equal statement without port shifts, or the statement itself."""
    match statement:
        case Apply(tests=tests, actions=actions):
            nat = _counted(actions)
            port_test = None if nat is None else _port_test(tests)
            new = {} if nat is None or port_test is None else _new_ports(nat, port_test)
            if not new:
                return statement
            others = tuple(test for test in tests if test is not port_test)
            return Lookup(
                fields=(Field.DPORT,),
                entries=tuple(
                    Entry(key=(Interval.point(old),), actions=(target,), origin=statement.origin)
                    for old, target in new.items()
                ),
                tests=others,
                origin=statement.origin,
            )
        case Lookup(fields=fields, entries=entries) if Field.DPORT in fields:
            return replace(statement, entries=tuple(_spelled_entries(entries, fields.index(Field.DPORT))))
        case Lookup(tests=tests, entries=entries) if any(_counted(e.actions) is not None for e in entries):
            port_test = _port_test(tests)
            if port_test is None:
                return statement
            return spelled_out(
                replace(
                    statement,
                    fields=(*statement.fields, Field.DPORT),
                    entries=tuple(replace(e, key=(*e.key, v)) for e in entries for v in port_test.values),
                    tests=tuple(test for test in tests if test is not port_test),
                )
            )
        case _:
            return statement


def counted_ports(inventory: Inventory) -> Iterator[Origin]:
    """Yield the origin of each rule with a port shift."""
    if Dnat not in inventory.actions:
        return
    for chain in inventory.program.chains:
        for statement in chain.statements:
            for each in alternatives(statement):
                if _counted(each.actions) is not None:
                    yield each.origin


def _counted(actions: tuple[Action, ...]) -> Dnat | None:
    """Return the DNAT with a port shift if it is the only action."""
    if len(actions) == 1 and isinstance(actions[0], Dnat) and actions[0].ports.base is not None:
        return actions[0]
    return None


def _spelled_entries(entries: tuple[Entry, ...], at: int) -> Iterator[Entry]:
    """Yield the entries of a lookup; ``at`` is the index of the destination port in its keys.

    The entries of one rule are taken together, as a pass may have split its ports.
    """
    ports: dict[tuple[Origin, Dnat], list[Value]] = {}
    for entry in entries:
        if (nat := _counted(entry.actions)) is not None:
            ports.setdefault((entry.origin, nat), []).append(entry.key[at])
    targets = {
        (origin, nat): _new_ports(nat, FieldTest(field=Field.DPORT, values=tuple(dict.fromkeys(values))))
        for (origin, nat), values in ports.items()
    }
    for entry in entries:
        nat = _counted(entry.actions)
        new = {} if nat is None else targets[entry.origin, nat]
        value = entry.key[at]
        if not new or not isinstance(value, Interval):
            yield entry
            continue
        for old in range(value.low, value.high + 1):
            key = (*entry.key[:at], Interval.point(old), *entry.key[at + 1 :])
            yield replace(entry, key=key, actions=(new[old],))


def _port_test(tests: tuple[Test, ...]) -> FieldTest | None:
    """Return the test of the destination ports, if the rule only matches protocols with ports."""
    protocols = transports(tests)
    if not protocols or not set(protocols) <= PORT_PROTOCOLS:
        return None
    for test in tests:
        if (
            isinstance(test, FieldTest)
            and test.field is Field.DPORT
            and not test.negated
            and test.mask is None
        ):
            return test
    return None


def _new_ports(nat: Dnat, port_test: FieldTest) -> dict[int, Dnat]:
    """Return the target of each port; nothing if two ports share one or the kernel chooses among several."""
    interval, base = nat.ports.interval, nat.ports.base
    assert interval is not None
    assert base is not None
    intervals = [value for value in port_test.values if isinstance(value, Interval)]
    if nat.addresses is None or not nat.addresses.is_point or nat.ports.random or nat.ports.fully_random:
        return {}
    if sum(ports.size for ports in intervals) > min(_MOST, interval.size):
        return {}
    old = [port for ports in intervals for port in range(ports.low, ports.high + 1)]
    new = [interval.low + (port - base) % 65536 % interval.size for port in old]
    if len(set(new)) < len(old):
        return {}
    plain = replace(nat.ports, base=None)
    return {
        port: replace(nat, ports=replace(plain, interval=Interval.point(to)))
        for port, to in zip(old, new, strict=True)
    }
