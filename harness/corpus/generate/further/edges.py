"""Flows at both ends of each range in the rules, and just beyond them.

If a translation slightly narrows or widens a range (a prefix of another length), only these packets change
their path. For a rule that ends the walk, there are also flows that would otherwise match a later rule. With
other packets, the outcome may not show whether the rule matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from backends.model.flow import Flow, Send
from backends.model.packet import Packet
from harness.corpus.formats.headers import with_header
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.goals import FlowGoals, hits
from harness.corpus.generate.selection import Place
from harness.corpus.reachability import WalkEnds
from translate.dataclass import replace
from translate.ir import Field, FieldTest, Interval, Rule, Ruleset

__all__ = ["Edge", "edge_flows"]

_FIELDS: Final = {Field.SADDR: "src", Field.DADDR: "dst", Field.SPORT: "sport", Field.DPORT: "dport"}
_HEADERS: Final = frozenset({Field.TTL, Field.LENGTH, Field.TOS, Field.CLOCK, Field.CLOCK_DAYTIME})
"""Fields for which only the values at the ends are tried, not nearby ones."""
_BYTE: Final = 0xFF
_NEAR: Final = 4
"""The number of values tried on each side of an end: several, because a host cannot have every address."""


class Edge(NamedTuple):
    """A flow at an end of a range, or just beyond it. ``limit`` is a range of addresses or ports."""

    place: Place
    flow: Flow
    limit: Interval | None


def edge_flows(
    ruleset: Ruleset,
    shown: Iterable[tuple[Send, FlowGoals]],
    places: Places,
    taken: set[str],
    *,
    strays: Iterable[tuple[Send, FlowGoals]] = (),
) -> Iterator[Edge]:
    """Yield a flow for each end of each range that a rule tests, with the rule and the range.

    Each is a variant of a flow in ``shown`` that hits the rule: of the first from outside the node, or, if
    that gives none, of the first made on the node. For a rule that ends the walk there are also variants of a
    flow in ``strays``. ``taken`` are the ids in use.
    """
    usual, stray = _models(shown), _models(strays)
    for table in ruleset.tables:
        ends = WalkEnds(table)
        for chain in table.chains:
            for index, rule in enumerate(chain.rules):
                place = (table.name, chain.name, index)
                flows = _of_rule(rule, usual.get(place, ()), places, taken)
                yield from (Edge(place, flow, limit) for flow, limit in flows)
                if ends.at(rule):
                    flows = _of_rule(rule, stray.get(place, ()), places, taken, of="-stray")
                    yield from (Edge(place, flow, limit) for flow, limit in flows)


def _models(shown: Iterable[tuple[Send, FlowGoals]]) -> Mapping[Place, Iterable[Send]]:
    """Return for each rule the first packet from outside that hits it, and the first made on the node."""
    models: dict[Place, dict[bool, Send]] = {}
    for sent, goal in hits(shown):
        models.setdefault(goal.place, {}).setdefault(sent.entry is None, sent)
    return {place: [of[made_here] for made_here in sorted(of)] for place, of in models.items()}


def _of_rule(
    rule: Rule, models: Iterable[Send], places: Places, taken: set[str], *, of: str = ""
) -> Iterator[tuple[Flow, Interval | None]]:
    for test in rule.tests:
        if not isinstance(test, FieldTest):
            continue
        if test.field in _HEADERS:
            yield from ((flow, None) for flow in _of_header(rule, test, models, taken, of=of))
        if test.field not in _FIELDS or test.mask is not None:
            continue
        ranges = [v for v in test.values if isinstance(v, Interval) and not v.is_point]
        for number, interval in enumerate(ranges):
            for end, starts in _ends(interval):
                sends = (_sent(model, test.field, v, places) for model in models for v in starts)
                send = next((s for s in sends if s), None)
                name = f"line{rule.origin.line}-{end}-{test.field.text}" + (
                    f"-{number + 1}{of}" if number else of
                )
                if send is not None and name not in taken:
                    taken.add(name)
                    why = f"at a limit of a range in {rule.origin.place}"
                    yield Flow(id=name, steps=(send,), why=why), interval


def _of_header(
    rule: Rule, test: FieldTest, models: Iterable[Send], taken: set[str], *, of: str
) -> Iterator[Flow]:
    """Yield flows at the ends of a range of a header field; for the TTL, before and after its decrement."""
    sides = _each_bit if test.field is Field.TOS else _both_sides
    ends = [v for interval in test.values if isinstance(interval, Interval) for v in sides(interval)]
    forwarding = (False, True) if test.field is Field.TTL else (False,)
    for value, model, forwarded in product(dict.fromkeys(ends), models, forwarding):
        packet = with_header(model.packet, test.field, value, model.entry, forwarded=forwarded)
        how = ("-here" if model.entry is None else "") + ("-forwarded" if forwarded else "")
        name = f"line{rule.origin.line}-{test.field.text}-{value}{how}{of}"
        if packet is not None and name not in taken:
            taken.add(name)
            why = f"at a limit of a range in {rule.origin.place}"
            yield Flow(id=name, steps=(Send(packet=packet, entry=model.entry),), why=why)


def _each_bit(interval: Interval) -> tuple[int, ...]:
    """Return the byte with each of its bits flipped in turn, including bits outside the mask."""
    return tuple(interval.low ^ 1 << bit for bit in range(_BYTE.bit_length()))


def _both_sides(interval: Interval) -> tuple[int, ...]:
    return interval.low - 1, interval.low, interval.high, interval.high + 1


def _ends(interval: Interval) -> Iterator[tuple[str, range]]:
    near = min(_NEAR, interval.size)
    yield "first", range(interval.low, interval.low + near)
    yield "last", range(interval.high, interval.high - near, -1)
    yield "before", range(interval.low - 1, interval.low - 1 - _NEAR, -1)
    yield "behind", range(interval.high + 1, interval.high + 1 + _NEAR)


def _sent(model: Send, field: Field, value: int, places: Places) -> Send | None:
    """Return the model with another value of the field, if a packet can have it.

    A packet made on the node may have any source address, as with a transparent proxy.
    """
    packet: Packet = model.packet
    changes: dict[str, Any] = {_FIELDS[field]: value}
    if value < 1:
        return None
    if field in (Field.SPORT, Field.DPORT):
        if not packet.has_ports or value > 0xFFFF:
            return None
        return Send(packet=replace(packet, **changes), entry=model.entry)
    if value >> places.family.bits or not places.usable(value):
        return None
    entry = places.behind(value) if field is Field.SADDR and model.entry is not None else model.entry
    if (not entry and model.entry is not None) or (field is Field.SADDR and value == packet.dst):
        return None
    return Send(packet=replace(packet, **changes), entry=entry)
