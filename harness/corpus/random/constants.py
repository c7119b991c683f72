"""Constants of the rules and the node, the source of the values in random packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from backends.model.node import Node
from harness.corpus.formats.headers import HEADER_FIELDS
from harness.corpus.random.kinds import LOOPBACK, MULTICAST, ODD_ADDRESSES
from translate.dataclass import dataclass
from translate.ir import (
    AnyOf,
    Dnat,
    Family,
    Field,
    FieldTest,
    Interval,
    Masquerade,
    Netmap,
    Redirect,
    Ruleset,
    Snat,
    TcpFlag,
    Test,
    field_bits,
)

__all__ = ["Constants", "Target", "constants_of"]

_ADDRESS_FIELDS: Final = frozenset(
    {
        Field.SADDR,
        Field.DADDR,
        Field.CT_ORIGINAL_SADDR,
        Field.CT_ORIGINAL_DADDR,
        Field.CT_REPLY_SADDR,
        Field.CT_REPLY_DADDR,
    }
)
_PORT_FIELDS: Final = frozenset(
    {
        Field.SPORT,
        Field.DPORT,
        Field.CT_ORIGINAL_SPORT,
        Field.CT_ORIGINAL_DPORT,
        Field.CT_REPLY_SPORT,
        Field.CT_REPLY_DPORT,
    }
)


@dataclass(frozen=True, slots=True)
class Target:
    """The requirements of one rule for a packet; None: no requirement for that field."""

    src: int | None
    dst: int | None
    proto: int | None
    sport: int | None
    dport: int | None


@dataclass(frozen=True, slots=True)
class Constants:
    """The constants of the rules and the node, each sorted and without repetition."""

    targets: tuple[Target, ...]
    addresses: tuple[int, ...]
    ports: tuple[int, ...]
    marks: tuple[int, ...]
    own: tuple[int, ...]
    loud: frozenset[int]
    interfaces: tuple[str, ...]
    headers: Mapping[Field, tuple[int, ...]]
    """Values for each field of the header and the frame that a rule tests."""
    congestion: bool
    """True if a rule tests ECE or CWR."""


def constants_of(ruleset: Ruleset, node: Node) -> Constants:
    """Return the constants of rules and node for packets of the rules' family."""
    addresses: set[int] = set()
    ports: set[int] = set()
    marks: set[int] = set()
    targets: dict[Target, None] = {}
    headers: dict[Field, set[int]] = {}
    congestion = False
    family = ruleset.family
    highest = (1 << family.bits) - 1
    for rule in ruleset.rules():
        if (target := _target(rule.tests)) is not None:
            targets[target] = None
        for test in _field_tests(rule.tests):
            values = [v for v in test.values if isinstance(v, Interval)]
            if test.field in _ADDRESS_FIELDS:
                addresses.update(_around(values, highest))
            elif test.field in _PORT_FIELDS:
                ports.update(_around(values, 0xFFFF))
            elif test.field in HEADER_FIELDS:
                most = (1 << field_bits(test.field, family)) - 1
                headers.setdefault(test.field, set()).update(_beside(values, most))
            elif test.field is Field.TCP_FLAGS:
                congestion |= bool((test.mask or 0) & (TcpFlag.ECE | TcpFlag.CWR))
            elif test.field is Field.MARK:
                marks.update(v.low for v in values)
        for action in rule.actions:
            if isinstance(action, Dnat | Snat) and action.addresses is not None:
                addresses.update(_around([action.addresses], highest))
            if isinstance(action, Netmap):
                last = action.network | (highest ^ action.mask)
                addresses.update(_around([Interval(action.network, last)], highest))
            if isinstance(action, Dnat | Snat | Redirect | Masquerade) and action.ports.interval:
                ports.update(_around([action.ports.interval], 0xFFFF))
    own: set[int] = {LOOPBACK[family]}
    # The node also receives the packets that it sends to these addresses: one packet, two outcomes.
    loud: set[int] = {a for a in ODD_ADDRESSES[family] if a == 0 or a >= MULTICAST[family]}
    for interface in node.interfaces:
        for a in interface.addresses:
            if a.family is family:
                own.add(a.value)
                broadcast = family is Family.IP and a.prefix_length < 31
                loud.update({a.network.high} if broadcast else ())
                addresses.update((a.value, a.network.low, a.network.high))
                addresses.update(x for x in (a.value - 1, a.value + 1, a.value + 7) if x in a.network)
    for route in node.routes:
        if route.family is family:
            addresses.update(x for x in (route.dst.low, route.dst.low + 9, route.via) if x)
    for policy in node.rules_of(family):
        for selected in (policy.src, policy.dst):
            if selected is not None:
                addresses.update((selected.low, selected.high))
        marks.update({policy.mark} if policy.mask else ())
    return Constants(
        tuple(targets),
        tuple(sorted(addresses)),
        tuple(sorted(ports)),
        tuple(sorted(marks)),
        tuple(sorted(own)),
        frozenset(loud),
        tuple(i.name for i in node.interfaces),
        {field: tuple(sorted(headers[field])) for field in Field if field in headers},
        congestion,
    )


def _target(tests: Sequence[Test]) -> Target | None:
    """Return a rule's ``==`` requirements for addresses and ports, or None if there are fewer than two."""
    wanted: dict[Field, int] = {}
    for test in tests:
        if isinstance(test, FieldTest) and not test.negated and test.mask is None:
            value = test.values[0]
            if isinstance(value, Interval):
                wanted[test.field] = value.low + (1 if value.size > 2 else 0)
    ends = (Field.SADDR, Field.DADDR, Field.L4PROTO, Field.SPORT, Field.DPORT)
    target = Target(*(wanted.get(f) for f in ends))
    return target if sum(f in wanted for f in ends) > 1 else None


def _field_tests(tests: Sequence[Test]) -> Iterator[FieldTest]:
    for test in tests:
        if isinstance(test, FieldTest):
            yield test
        elif isinstance(test, AnyOf):
            yield from test.tests


def _beside(intervals: Iterable[Interval], most: int) -> Iterator[int]:
    """Yield both ends of each interval and the values just outside, including 0 and the greatest value."""
    for i in intervals:
        yield from (v for v in (i.low, i.high, i.low - 1, i.high + 1) if 0 <= v <= most)


def _around(intervals: Iterable[Interval], highest: int) -> Iterator[int]:
    """Yield both ends of each interval and the values just outside."""
    for i in intervals:
        yield from (v for v in {i.low, i.high, i.low - 1, i.high + 1} if 0 < v < highest)
