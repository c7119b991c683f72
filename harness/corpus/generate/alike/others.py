"""Flows for the members of classes that are not searched.

Each member gets all flows of the corpus that hit a rule of its class's model, with its own constants in place
of the model's; for the trial of a plan, some of them. It gets further flows to show every side of its rules:
each rule matches at every hook, and each of its tests fails while the others hold. The simulator runs only
the flows that are needed to show this.
If they do not show what the model's flows show, the member differs from its model on this node, and is
returned without flows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from backends.model.flow import Send, Step
from backends.model.packet import Packet
from backends.model.withfields import with_fields
from backends.simulator import Choices, Watched
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Class, Classes
from harness.corpus.generate.alike.exchange import Exchange
from harness.corpus.generate.alike.followups import FollowUps, decides_at_first, opening_packet
from harness.corpus.generate.alike.groups import Kind, Member
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.goals import HIT, FlowGoals, Goal
from harness.corpus.generate.minimal import cover
from harness.corpus.generate.search import GoalFlow, Search
from harness.corpus.generate.selection import Place
from translate.ir import Field, FieldTest, Protocol, TableName, Test

__all__ = ["other_flows"]

_Side = tuple[int, str, int]
"""One result of a member's rule: the rule's position, the hook of a HIT, and the failing test or HIT.

The hook counts because only the node's own packets may show the effect of a rule.
"""

_CONNECTIONS: Final = 4
"""The number of connections of a client to a service with affinity.

With two endpoints and no affinity, 1 in 8 clients would also keep its endpoint.
"""

_APART: Final = 10000
"""The distance between the ports of these connections; a service's clients have ports from 20000 to 29999."""

_MOST_TRIES: Final = 12
"""The number of further flows of the model that are tried for a side that the kept flows do not show."""


class _Choice(NamedTuple):
    """A flow, the sides of rules for which it is kept, and the kind of client that sends it.

    ``goal`` is a rule that it hits; None for a flow that the search found but that is not in the corpus.
    ``received``: its packet is made on the node, and another flow of the corpus receives the same.
    """

    steps: Steps
    sides: frozenset[_Side]
    use: str | None = None
    goal: Goal | None = None
    received: bool = False


class _Copied(NamedTuple):
    """A flow of the corpus that each other member gets, and the rule that it hits.

    ``rule`` is the position of that rule among the member's rules. ``received`` as in :class:`_Choice`.
    """

    steps: Steps
    use: str | None
    rule: int
    goal: Goal
    received: bool


@dataclass(frozen=True, slots=True)
class _Model:
    """The fewest flows that show all sides of a model's rules, each with the sides for which it is kept.

    ``more`` has some flows for each of these sides. ``copied`` are those that every other member gets, too.
    ``at_first``: later packets of a connection meet no rule of the member (:mod:`.followups`). ``branches``
    has, for each flow of ``kept``, the choices of the branch that showed its sides at the member before; it
    is the first to be followed at the next one.
    """

    member: Member
    kept: tuple[_Choice, ...]
    more: Mapping[_Side, tuple[_Choice, ...]]
    copied: tuple[_Copied, ...]
    at_first: bool
    branches: list[Choices]


def other_flows(
    classes: Classes,
    search: Search,
    corpus: Sequence[tuple[Steps, FlowGoals]],
    uses: Mapping[Steps, str],
    *,
    fewer: bool,
) -> Iterator[tuple[Member, list[GoalFlow] | None]]:
    """Yield each member that is not searched, with flows made from its model's flows in ``corpus``.

    The flows are None if they do not show what the model's flows show. ``uses`` maps flows to services to the
    kind of client that sends them. ``fewer``: without the flows that the trial of a plan does not need.
    """
    sent = {steps for steps, _ in corpus}
    for group, model in zip(classes.classes, _models(classes.classes, search, corpus, uses), strict=True):
        for member in group.others:
            yield member, _of(member, model, search, sent, fewer=fewer)


def _of(
    member: Member, model: _Model, search: Search, sent: set[Steps], *, fewer: bool
) -> list[GoalFlow] | None:
    """Return the flows for a member; None if they miss a goal that the model's flows reach.

    ``sent`` has the flows of the corpus and of other members. Such a flow is repeated only if it is needed
    to reach a goal.
    """
    exchange = Exchange.of(model.member, member, search.places)
    rules = _rules(member)
    sides = {place: number for number, place in enumerate(member.places)}
    flows: dict[Steps, GoalFlow] = {}
    shown: set[_Side] = set()

    def is_left_out(flow: Steps) -> bool:
        """Return whether the packet of a flow that is also received has a source that is not the node's."""
        first = flow[0]
        return fewer and isinstance(first, Send) and search.places.behind(first.packet.src) is not None

    def show(choice: _Choice, expected: frozenset[_Side], likely: Choices = ()) -> Choices:
        """Add a flow if it shows a new side; return the choices of the branch that shows all of them."""
        made = exchange.steps(choice.steps)
        if made is None:
            return likely
        if choice.received and is_left_out(made):
            shown.update(expected)
            return likely
        by_side: dict[_Side, Goal] = {}
        goals, last = FlowGoals(), likely
        for shown_here, choices in search.branch_goals(made, rules, likely):
            goals.add(shown_here)
            here = {_side(goal, sides): goal for goal in shown_here.near}
            by_side |= here
            if expected <= by_side.keys():
                last = choices if expected <= here.keys() else ()
                break
        new = expected & by_side.keys() - shown
        shown.update(new)
        if new and made in flows:
            flows[made].goals.near.update(goals.near)
        elif new:
            sent.add(made)
            goal = by_side[min(new)]
            flows[made] = GoalFlow(goal, search.rule(goal.place), made, goals, choice.use)
        return last

    for number, choice in enumerate(model.kept):
        model.branches[number] = show(choice, choice.sides, model.branches[number])
    # With the constants exchanged, a packet may belong to another member, whose rules come earlier.
    for side, choices in model.more.items():
        if side in shown:
            continue
        for choice in choices:
            show(choice, frozenset({side}))
            if side in shown:
                break
        else:
            sent.difference_update(flows)
            return None
    nothing = FlowGoals()  # of many flows, whose goals need not be known
    follow_ups = FollowUps(search.reads_source_ports)
    for steps in flows:
        follow_ups.add(steps)
    for steps, use, rule, goal, received in model.copied:
        made = exchange.steps(steps)
        if made is None or made in sent or not search.can_try(made) or (received and is_left_out(made)):
            continue
        sent.add(made)
        if fewer and follow_ups.add(made) and model.at_first:
            continue
        table, chain, index = member.places[rule]
        own = goal._replace(table=table, chain=chain, rule=index)
        flows[made] = GoalFlow(own, search.rule(own.place), made, nothing, use)
    return list(flows.values())


def _rules(member: Member) -> Watched:
    rules: dict[tuple[TableName, str], list[int]] = {}
    for table, chain, index in member.places:
        rules.setdefault((table, chain), []).append(index)
    return {chain: frozenset(indexes) for chain, indexes in rules.items()}


def _side(goal: Goal, sides: dict[Place, int]) -> _Side:
    return sides[goal.place], goal.hook.value if goal.side == HIT else "", goal.side


def _models(
    classes: Iterable[Class],
    search: Search,
    corpus: Iterable[tuple[Steps, FlowGoals]],
    uses: Mapping[Steps, str],
) -> Iterator[_Model]:
    members = [group.searched[0] for group in classes]
    owners = {place: n for n, member in enumerate(members) for place in member.places}
    positions = [{place: at for at, place in enumerate(member.places)} for member in members]
    choices: list[list[_Choice]] = [[] for _ in members]
    tried = ((flow.steps, flow.goals) for flow in search.flows)
    for (steps, flow_goals), in_corpus in (*((c, True) for c in corpus), *((t, False) for t in tried)):
        goals: dict[int, set[Goal]] = {}
        for goal in flow_goals.near:
            owner = owners.get(goal.place)
            if owner is not None:
                goals.setdefault(owner, set()).add(goal)
        for number, owned in goals.items():
            sides = frozenset(_side(goal, positions[number]) for goal in owned)
            named = min((goal for goal in owned if goal.side == HIT), default=None) if in_corpus else None
            choices[number].append(_Choice(steps, sides, uses.get(steps), named))
    for member, of in zip(members, choices, strict=True):
        of.sort(key=lambda choice: _made_here(choice.steps))
        of[:0] = _elsewhere(member, of, search)
        received = _received(of, search)
        of[:] = _marked(of, received, search)
        spare = sorted(of, key=lambda choice: len(choice.steps))
        single_misses = tuple(_failing_one_test(member, of, search))
        kept = (*single_misses, *_kept(of, single_misses, member, search))
        expected = sorted({side for choice in kept for side in choice.sides})
        more = {side: tuple(_showing(side, spare)) for side in expected}
        at_first = decides_at_first(member, [search.rule(place) for place in member.places])
        kept = tuple(_marked(kept, received, search))
        yield _Model(member, kept, more, tuple(_copied(member, spare)), at_first, [()] * len(kept))


def _showing(side: _Side, choices: Iterable[_Choice]) -> Iterator[_Choice]:
    return itertools.islice((choice for choice in choices if side in choice.sides), _MOST_TRIES)


def _received(choices: Iterable[_Choice], search: Search) -> set[Packet]:
    """Return the first packets of the flows of the corpus that begin outside of the node."""
    sends = [choice.steps[0] for choice in choices if choice.goal is not None]
    ports = search.reads_source_ports
    return {opening_packet(s, ports=ports) for s in sends if isinstance(s, Send) and s.entry is not None}


def _marked(choices: Iterable[_Choice], received: set[Packet], search: Search) -> Iterator[_Choice]:
    """Yield the choices, with ``received`` set where it is true."""
    for choice in choices:
        sends = [step for step in choice.steps if isinstance(step, Send)]
        made_here = len(sends) == 1 and sends[0].entry is None
        packet = opening_packet(sends[0], ports=search.reads_source_ports)
        yield choice._replace(received=made_here and packet in received)


def _copied(member: Member, choices: Iterable[_Choice]) -> Iterator[_Copied]:
    """Yield the choices that are flows of the corpus, in the form in which other members get them."""
    lists = any(constant.kind == Kind.LIST for constant in member.constants)
    for steps, _, use, goal, received in choices:
        if goal is not None:
            made = _coming_back(steps[0]) if use is not None and lists else steps
            own = received and made[0] is steps[0] and len(made) <= len(steps)
            yield _Copied(made, use, member.places.index(goal.place), goal, own)


def _elsewhere(member: Member, choices: list[_Choice], search: Search) -> Iterator[_Choice]:
    """Yield variants of the flows that match the entries, sent to an outside address that no rule names.

    The destination that the search chose may belong to another member, whose rules come earlier.
    """
    rules = _rules(member)
    sides = {place: number for number, place in enumerate(member.places)}
    for entry in range(len(member.entries)):
        steps = next((choice.steps for choice in choices if _hits(choice.sides, entry)), None)
        if steps is None or not isinstance(steps[0], Send):
            continue
        first = steps[0]
        dst = next((a for a in search.places.outside if a != first.packet.src), None)
        if dst is not None:
            elsewhere = (Send(packet=with_fields(first.packet, dst=dst), entry=first.entry),)
            for goals in itertools.islice(search.goals_of(elsewhere, rules), 1):
                yield _Choice(elsewhere, frozenset(_side(goal, sides) for goal in goals.near))


def _failing_one_test(member: Member, choices: list[_Choice], search: Search) -> Iterator[_Choice]:
    """Yield for each test of an entry a packet that fails only this test, so that a missing test shows.

    The entry may lead to rules for some clients only. If a translation loses the test, a packet of any other
    client still has the same outcome.
    """

    def shown(steps: Steps) -> frozenset[_Side]:
        return _shown(steps, member, search)

    for entry, (table, chain, index) in enumerate(member.entries):
        rule = search.rule((table, chain, index))
        hits = [choice for choice in choices if _hits(choice.sides, entry)]
        hits.sort(key=lambda choice: -sum(side == HIT for _, _, side in choice.sides))
        first = next((h.steps[0] for h in hits[:_MOST_TRIES] if _hits(shown(h.steps[:1]), entry)), None)
        if not isinstance(first, Send):
            continue
        for at, test in enumerate(rule.tests):
            for packet in _failing(first.packet, test, search.places):
                steps = (Send(packet=packet, entry=first.entry),)
                if (entry, "", at) in shown(steps):
                    yield _Choice(steps, frozenset({(entry, "", at)}))
                    break


def _failing(packet: Packet, test: Test, places: Places) -> Iterator[Packet]:
    """Yield the packet with other values of the field that the test is for, if it can have them."""
    match test:
        case FieldTest(field=Field.L4PROTO) if packet.has_ports:
            other = Protocol.UDP if packet.proto == Protocol.TCP else Protocol.TCP
            yield with_fields(packet, proto=other)
        case FieldTest(field=Field.DPORT) if isinstance(packet.dport, int):
            for port in (packet.dport + 1, packet.dport - 1):
                if 0 < port < 1 << 16:
                    yield with_fields(packet, dport=port)
        case FieldTest(field=Field.DADDR | Field.FIB_DADDR_TYPE):
            near = (packet.dst + 1, packet.dst - 1) if test.field is Field.DADDR else ()
            for dst in (*filter(places.usable, near), *places.outside):
                if dst != packet.src:
                    yield with_fields(packet, dst=dst)
        case _:
            pass


def _made_here(steps: Steps) -> bool:
    return isinstance(steps[0], Send) and steps[0].entry is None


def _kept(
    choices: list[_Choice], before: Iterable[_Choice], member: Member, search: Search
) -> Iterator[_Choice]:
    """Yield a few flows that together show all sides, each with the sides that earlier ones do not show."""
    known = {side for choice in before for side in choice.sides}
    for index in cover([choice.sides for choice in choices], known):
        steps, sides, *_ = choices[index]
        new = sides - known
        known |= sides
        if len(steps) > 1 and new <= _shown(steps[:1], member, search):
            steps = steps[:1]
        if new:
            yield _Choice(steps, new)


def _shown(steps: Steps, member: Member, search: Search) -> frozenset[_Side]:
    """Return the sides of a member's rules that a flow shows."""
    sides = {place: number for number, place in enumerate(member.places)}
    shown: set[_Side] = set()
    for goals in search.goals_of(steps, _rules(member)):
        shown = {_side(goal, sides) for goal in goals.near}
    return frozenset(shown)


def _hits(sides: Iterable[_Side], rule: int) -> bool:
    """Return whether a rule is among those that match."""
    return any(at == rule and side == HIT for at, _, side in sides)


def _coming_back(first: Step) -> Steps:
    """Return a flow in which a client connects several times, so that rules with affinity remember it."""
    assert isinstance(first, Send)
    port = first.packet.sport
    if not isinstance(port, int):
        return (first,)
    more = [with_fields(first.packet, sport=port + number * _APART) for number in range(1, _CONNECTIONS)]
    return (first, *(Send(packet=packet, entry=first.entry) for packet in more))
