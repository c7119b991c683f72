"""Flows for each element of the ipsets in rules: members, and packets that just miss membership.

If a translation loses or changes an element, only the packets of this element change their path.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from backends.model.flow import Flow, Send
from backends.model.packet import Packet
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.goals import FlowGoals, hits
from harness.corpus.generate.selection import Place
from harness.corpus.reachability import WalkEnds
from translate.dataclass import replace
from translate.ir import (
    PORT_PROTOCOLS,
    AddressType,
    Family,
    Field,
    FieldTest,
    Hook,
    Interval,
    IpSet,
    Protocol,
    Ruleset,
    SetElement,
    SetTest,
    SetType,
    Test,
)

__all__ = ["member_flows", "without_sets"]

_MOST_CHOICES: Final = 64
_MOST_ELEMENTS: Final = 48
"""The maximum number of elements of one set that get flows of their own."""

_NEAR: Final = 4
_OTHER: Final = {Protocol.TCP: Protocol.UDP, Protocol.UDP: Protocol.TCP, Protocol.SCTP: Protocol.TCP}

_Sets = Mapping[str, IpSet]
_Values = Mapping[Field, int]


def without_sets(
    tests: Iterable[Test], sets: _Sets, family: Family, *, broken: Test | None = None
) -> Iterator[tuple[Test, ...]]:
    """Yield the tests with each test of an ipset replaced by tests for one of its elements.

    ``broken`` is a test of a set that must fail: exactly one field differs from an element.
    """
    plain = [t for t in tests if not isinstance(t, SetTest)]
    tested = [t for t in tests if isinstance(t, SetTest) and t.name in sets and not t.negated]
    choices = [[_of(e, t, sets[t.name]) for e in _elements(t, sets[t.name], family)] for t in tested]
    if isinstance(broken, SetTest) and broken.name in sets:
        elements = [_of(e, broken, sets[broken.name]) for e in _elements(broken, sets[broken.name], family)]
        choices.append(elements if broken.negated else [miss for e in elements for miss in _misses(e)])
    for choice in itertools.islice(itertools.product(*choices), _MOST_CHOICES):
        yield (*plain, *itertools.chain.from_iterable(choice))


def _elements(test: SetTest, of: IpSet, family: Family) -> list[SetElement]:
    """Return the elements that a packet must have for the test, if it is not negated."""
    return [] if of.family not in (None, family) else [e for e in of.elements if e.nomatch is test.nomatch]


def _of(element: SetElement, test: SetTest, of: IpSet) -> tuple[FieldTest, ...]:
    fields = zip(of.fields(test.directions), element.key, strict=True)
    tests = tuple(FieldTest(field=field, values=(interval,)) for field, interval in fields)
    if of.type is not SetType.BITMAP_PORT:
        return tests
    both = tuple(Interval(int(p), int(p)) for p in (Protocol.TCP, Protocol.UDP))
    return (*tests, FieldTest(field=Field.L4PROTO, values=both))


def _misses(tests: tuple[FieldTest, ...]) -> Iterator[tuple[FieldTest, ...]]:
    for at, test in enumerate(tests):
        other = FieldTest(field=test.field, values=test.values, negated=True)
        yield (*tests[:at], other, *tests[at + 1 :])


def member_flows(
    ruleset: Ruleset,
    shown: Iterable[tuple[Send, FlowGoals]],
    places: Places,
    taken: set[str],
    *,
    strays: Iterable[tuple[Send, FlowGoals]] = (),
) -> Iterator[Flow]:
    """Yield, for each rule that tests a set, flows that match each element, and flows that just miss it.

    Each is a variant of the first flow in ``shown`` that hits the rule at a hook. For a rule that ends the
    walk there are also variants of the first flow in ``strays``, which matches a later rule if this one does
    not. ``taken`` are the ids in use.
    """
    usual, stray = _models(shown), _models(strays)
    sets = {ipset.name: ipset for ipset in ruleset.sets}
    sent_before: set[Send] = set()
    for table in ruleset.tables:
        ends = WalkEnds(table)
        for chain in table.chains:
            for index, rule in enumerate(chain.rules):
                tested = [t for t in rule.tests if isinstance(t, SetTest) and t.name in sets]
                place = (table.name, chain.name, index)
                models = [(hook, model, "") for hook, model in usual.get(place, {}).items()]
                if ends.at(rule):
                    models += [(hook, model, "-stray") for hook, model in stray.get(place, {}).items()]
                for hook, model, suffix in models:
                    for test, (what, send) in (
                        (t, s) for t in tested for s in _sends(t, sets, model, places)
                    ):
                        name = f"line{rule.origin.line}-{hook.value.lower()}-{what}{suffix}"
                        if send not in sent_before and name not in taken:
                            sent_before.add(send)
                            taken.add(name)
                            why = f"{what.replace('-', ' ')} of {test.name}, for {rule.origin.place}"
                            yield Flow(id=name, steps=(send,), why=why)


def _models(shown: Iterable[tuple[Send, FlowGoals]]) -> Mapping[Place, Mapping[Hook, Send]]:
    """Return for each rule and hook the first packet that hits the rule there."""
    models: dict[Place, dict[Hook, Send]] = {}
    for sent, goal in hits(shown):
        models.setdefault(goal.place, {}).setdefault(goal.hook, sent)
    return models


def _sends(test: SetTest, sets: _Sets, model: Send, places: Places) -> Iterator[tuple[str, Send]]:
    """Yield variants of the model that match each element, and variants that just miss it in one field."""
    of = sets[test.name]
    elements = _elements(test, of, places.family)
    fields = of.fields(test.directions)
    for number in sorted({i * len(elements) // _MOST_ELEMENTS for i in range(_MOST_ELEMENTS)}):
        if number >= len(elements):
            continue
        key = elements[number].key
        member = {field: interval.low for field, interval in zip(fields, key, strict=True)}
        if send := _sent(model, member, places):
            yield f"element-{number + 1}", send
        if of.type is SetType.BITMAP_PORT and model.packet.proto in _OTHER:
            other = {**member, Field.L4PROTO: int(_OTHER[Protocol(model.packet.proto)])}
            if send := _sent(model, other, places):
                yield f"element-{number + 1}-other-protocol", send
        for field, interval in zip(fields, key, strict=True):
            for end, values in _beside(field, interval):
                near = (_sent(model, {**member, field: value}, places) for value in values)
                if send := next((s for s in near if s), None):
                    yield f"{end}-element-{number + 1}-{field.text}", send


def _beside(field: Field, interval: Interval) -> Iterator[tuple[str, list[int]]]:
    if field is Field.L4PROTO:
        yield "beside", [int(_OTHER.get(Protocol(interval.low), Protocol.UDP))]
        return
    yield "before", list(range(interval.low - 1, interval.low - 1 - _NEAR, -1))
    yield "behind", list(range(interval.high + 1, interval.high + 1 + _NEAR))
    if not interval.is_point:
        yield "last", list(range(interval.high, interval.high - min(_NEAR, interval.size), -1))


def _sent(model: Send, values: _Values, places: Places) -> Send | None:
    """Return the model with other values, if a packet can have them."""
    packet: Packet = model.packet
    proto = values.get(Field.L4PROTO, packet.proto)
    if proto != packet.proto:
        packet = Packet(family=packet.family, src=packet.src, dst=packet.dst, proto=proto, mark=packet.mark)
        if proto not in PORT_PROTOCOLS:
            return None
        packet = replace(packet, sport=_port(model.packet.sport, 40000), dport=_port(model.packet.dport, 80))
    src, dst = values.get(Field.SADDR, packet.src), values.get(Field.DADDR, packet.dst)
    ports = [values.get(field, 1) for field in (Field.SPORT, Field.DPORT)]
    if not all(0 < port < 1 << 16 for port in ports) or min(src, dst) < 1:
        return None
    if max(src, dst) >> places.family.bits or not places.usable(src) or not places.usable(dst):
        return None
    if packet.has_ports:
        packet = replace(
            packet, sport=values.get(Field.SPORT, packet.sport), dport=values.get(Field.DPORT, packet.dport)
        )
    elif Field.SPORT in values or Field.DPORT in values:
        return None
    entry = model.entry
    if src != packet.src:
        entry = places.behind(src)
        if entry == "" or (entry is None and model.entry is not None):
            return None
        if entry is not None and model.entry is None and places.kind(src) is not AddressType.LOCAL:
            entry = None  # a program on the node that sends with a foreign source address
    return Send(packet=replace(packet, src=src, dst=dst), entry=entry)


def _port(port: object, usual: int) -> int:
    return port if isinstance(port, int) else usual
