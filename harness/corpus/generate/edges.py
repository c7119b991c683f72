"""The ends of ranges: for each rule that asks for a range, packets at both ends of it and just beyond them.

A range that is cut or widened by a little (a prefix of another length) lets all but these packets go where
they went before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from backends.flow import Flow, Send
from backends.packet import Packet
from harness.corpus.generate.goals import HIT, Goal, Seen
from harness.corpus.generate.places import Places
from translate.ir import Field, FieldTest, Interval, Rule, Ruleset

__all__ = ["edge_flows"]

_FIELDS: Final = {Field.SADDR: "src", Field.DADDR: "dst", Field.SPORT: "sport", Field.DPORT: "dport"}
_NEAR: Final = 4
"""How far from an end the next address may be that a host can have."""


def edge_flows(
    ruleset: Ruleset, shown: Iterable[tuple[Send, Seen]], places: Places, taken: set[str]
) -> Iterator[Flow]:
    """Yield a flow for each end of each range that a rule asks for.

    Each is made of the first flow among ``shown`` that hits the rule, from outside if one does.
    ``taken`` are the ids in use.
    """
    models: dict[tuple[str, str, int], Send] = {}
    for sent, seen in shown:
        for goal in seen.near:
            if goal.side == HIT:
                rule = _rule(goal)
                if rule not in models or (models[rule].entry is None and sent.entry is not None):
                    models[rule] = sent
    for table in ruleset.tables:
        for chain in table.chains:
            for index, one in enumerate(chain.rules):
                model = models.get((table.name.value, chain.name, index))
                if model is not None:
                    yield from _of_rule(one, model, places, taken)


def _rule(goal: Goal) -> tuple[str, str, int]:
    return goal.table.value, goal.chain, goal.rule


def _of_rule(rule: Rule, model: Send, places: Places, taken: set[str]) -> Iterator[Flow]:
    for test in rule.tests:
        if not isinstance(test, FieldTest) or test.field not in _FIELDS or test.mask is not None:
            continue
        ranges = [v for v in test.values if isinstance(v, Interval) and not v.is_point]
        for number, one in enumerate(ranges):
            for end, starts in _ends(one):
                send = next((s for v in starts if (s := _sent(model, test.field, v, places))), None)
                name = f"line{rule.origin.line}-{end}-{test.field.text}" + (
                    f"-{number + 1}" if number else ""
                )
                if send is not None and name not in taken:
                    taken.add(name)
                    why = f"at an end of what {rule.origin.place} asks for"
                    yield Flow(id=name, steps=(send,), why=why)


def _ends(one: Interval) -> Iterator[tuple[str, Iterable[int]]]:
    near = min(_NEAR, one.size)
    yield "first", range(one.low, one.low + near)
    yield "last", range(one.high, one.high - near, -1)
    yield "before", range(one.low - 1, one.low - 1 - _NEAR, -1)
    yield "behind", range(one.high + 1, one.high + 1 + _NEAR)


def _sent(model: Send, field: Field, value: int, places: Places) -> Send | None:
    """The model with another value, if a packet can have it.

    What the node makes, it makes in anybody's name, as a transparent proxy does.
    """
    packet: Packet = model.packet
    if value < 1:
        return None
    if field in (Field.SPORT, Field.DPORT):
        if not packet.has_ports or value > 0xFFFF:
            return None
        return Send(packet=packet.changed(**{_FIELDS[field]: value}), entry=model.entry)
    if value >> places.family.bits or not places.usable(value):
        return None
    entry = places.behind(value) if field is Field.SADDR and model.entry is not None else model.entry
    if (not entry and model.entry is not None) or (field is Field.SADDR and value == packet.dst):
        return None
    return Send(packet=packet.changed(**{_FIELDS[field]: value}), entry=entry)
