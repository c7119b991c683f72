"""The models of classes: for each, the flows that show all sides of its rules.

The model of a class is its first member. Its flows become those of the members that are not searched
(:mod:`.others`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from backends.model.flow import Send, Step
from backends.model.packet import Packet
from backends.simulator import Choices, Watched
from harness.corpus.generate.addresses import Places
from harness.corpus.generate.alike.classes import Class
from harness.corpus.generate.alike.followups import decides_at_first, opening_packet
from harness.corpus.generate.alike.groups import Kind, Member
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.goals import HIT, FlowGoals, Goal
from harness.corpus.generate.minimal import cover
from harness.corpus.generate.search import Search
from harness.corpus.generate.selection import Place
from translate.dataclass import dataclass, replace
from translate.ir import Field, FieldTest, Protocol, TableName, Test

__all__ = ["Choice", "Copied", "Model", "Side", "models", "rules_of", "side_of"]

Side = tuple[int, str, int]
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


class Choice(NamedTuple):
    """A flow, the sides of rules for which it is kept, and the kind of client that sends it.

    ``goal`` is a rule that it hits; None for a flow that the search found but that is not in the corpus.
    ``received`` is a flow of the corpus that begins with the same packet outside of the node, if this one is
    made on the node.
    """

    steps: Steps
    sides: frozenset[Side]
    use: str | None = None
    goal: Goal | None = None
    received: Steps | None = None


class Copied(NamedTuple):
    """A flow of the corpus that each other member gets, and the rule that it hits.

    ``rule`` is the position of that rule among the member's rules. ``received`` as in :class:`Choice`.
    """

    steps: Steps
    use: str | None
    rule: int
    goal: Goal
    received: Steps | None


@dataclass(frozen=True, slots=True)
class Model:
    """The fewest flows that show all sides of a model's rules, each with the sides for which it is kept.

    ``more`` has some flows for each of these sides. ``copied`` are those that every other member gets, too.
    ``at_first``: later packets of a connection meet no rule of the member (:mod:`.followups`). ``branches``
    has, for each flow of ``kept``, the choices of the branch that showed its sides at the member before; it
    is the first to be followed at the next one.
    """

    member: Member
    kept: tuple[Choice, ...]
    more: Mapping[Side, tuple[Choice, ...]]
    copied: tuple[Copied, ...]
    at_first: bool
    branches: list[Choices]


def rules_of(member: Member) -> Watched:
    """Return the rules of a member, for the simulator to watch."""
    rules: dict[tuple[TableName, str], list[int]] = {}
    for table, chain, index in member.places:
        rules.setdefault((table, chain), []).append(index)
    return {chain: frozenset(indexes) for chain, indexes in rules.items()}


def side_of(goal: Goal, sides: Mapping[Place, int]) -> Side:
    """Return the side that a goal is; ``sides`` are the positions of the member's rules."""
    return sides[goal.place], goal.hook.value if goal.side == HIT else "", goal.side


def models(
    classes: Iterable[Class],
    search: Search,
    corpus: Iterable[tuple[Steps, FlowGoals]],
    uses: Mapping[Steps, str],
) -> Iterator[Model]:
    """Yield the model of each class, made from the flows in ``corpus`` and all that the search found.

    ``uses`` maps flows to services to the kind of client that sends them.
    """
    members = [group.searched[0] for group in classes]
    owners = {place: n for n, member in enumerate(members) for place in member.places}
    positions = [{place: at for at, place in enumerate(member.places)} for member in members]
    choices: list[list[Choice]] = [[] for _ in members]
    tried = ((flow.steps, flow.goals) for flow in search.flows)
    for (steps, flow_goals), in_corpus in (*((c, True) for c in corpus), *((t, False) for t in tried)):
        goals: dict[int, set[Goal]] = {}
        for goal in flow_goals.near:
            owner = owners.get(goal.place)
            if owner is not None:
                goals.setdefault(owner, set()).add(goal)
        for number, owned in goals.items():
            sides = frozenset(side_of(goal, positions[number]) for goal in owned)
            named = min((goal for goal in owned if goal.side == HIT), default=None) if in_corpus else None
            choices[number].append(Choice(steps, sides, uses.get(steps), named))
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
        yield Model(member, kept, more, tuple(_copied(member, spare)), at_first, [()] * len(kept))


def _showing(side: Side, choices: Iterable[Choice]) -> Iterator[Choice]:
    return itertools.islice((choice for choice in choices if side in choice.sides), _MOST_TRIES)


def _received(choices: Iterable[Choice], search: Search) -> dict[Packet, Steps]:
    """Return the flows of the corpus that begin outside of the node, by their first packets."""
    ports = search.reads_source_ports
    flows = [choice.steps for choice in choices if choice.goal is not None]
    return {
        opening_packet(first, ports=ports): flow
        for flow in flows
        if isinstance(first := flow[0], Send) and first.entry is not None
    }


def _marked(choices: Iterable[Choice], received: Mapping[Packet, Steps], search: Search) -> Iterator[Choice]:
    """Yield the choices, with ``received`` where there is such a flow."""
    for choice in choices:
        sends = [step for step in choice.steps if isinstance(step, Send)]
        if len(sends) == 1 and sends[0].entry is None:
            packet = opening_packet(sends[0], ports=search.reads_source_ports)
            yield choice._replace(received=received.get(packet))
        else:
            yield choice


def _copied(member: Member, choices: Iterable[Choice]) -> Iterator[Copied]:
    """Yield the choices that are flows of the corpus, in the form in which other members get them."""
    lists = any(constant.kind == Kind.LIST for constant in member.constants)
    for steps, _, use, goal, received in choices:
        if goal is not None:
            made = _coming_back(steps[0]) if use is not None and lists else steps
            yield Copied(
                made, use, member.places.index(goal.place), goal, received if made is steps else None
            )


def _elsewhere(member: Member, choices: list[Choice], search: Search) -> Iterator[Choice]:
    """Yield variants of the flows that match the entries, sent to an outside address that no rule names.

    The destination that the search chose may belong to another member, whose rules come earlier.
    """
    rules = rules_of(member)
    sides = {place: number for number, place in enumerate(member.places)}
    for entry in range(len(member.entries)):
        steps = next((choice.steps for choice in choices if _hits(choice.sides, entry)), None)
        if steps is None or not isinstance(steps[0], Send):
            continue
        first = steps[0]
        dst = next((a for a in search.places.outside if a != first.packet.src), None)
        if dst is not None:
            elsewhere = (Send(packet=replace(first.packet, dst=dst), entry=first.entry),)
            for goals in itertools.islice(search.goals_of(elsewhere, rules), 1):
                yield Choice(elsewhere, frozenset(side_of(goal, sides) for goal in goals.near))


def _failing_one_test(member: Member, choices: list[Choice], search: Search) -> Iterator[Choice]:
    """Yield for each test of an entry a packet that fails only this test, so that a missing test shows.

    The entry may lead to rules for some clients only. If a translation loses the test, a packet of any other
    client still has the same outcome.
    """

    def shown(steps: Steps) -> frozenset[Side]:
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
                    yield Choice(steps, frozenset({(entry, "", at)}))
                    break


def _failing(packet: Packet, test: Test, places: Places) -> Iterator[Packet]:
    """Yield the packet with other values of the field that the test is for, if it can have them."""
    match test:
        case FieldTest(field=Field.L4PROTO) if packet.has_ports:
            other = Protocol.UDP if packet.proto == Protocol.TCP else Protocol.TCP
            yield replace(packet, proto=other)
        case FieldTest(field=Field.DPORT) if isinstance(packet.dport, int):
            for port in (packet.dport + 1, packet.dport - 1):
                if 0 < port < 1 << 16:
                    yield replace(packet, dport=port)
        case FieldTest(field=Field.DADDR | Field.FIB_DADDR_TYPE):
            near = (packet.dst + 1, packet.dst - 1) if test.field is Field.DADDR else ()
            for dst in (*filter(places.usable, near), *places.outside):
                if dst != packet.src:
                    yield replace(packet, dst=dst)
        case _:
            pass


def _made_here(steps: Steps) -> bool:
    return isinstance(steps[0], Send) and steps[0].entry is None


def _kept(
    choices: list[Choice], before: Iterable[Choice], member: Member, search: Search
) -> Iterator[Choice]:
    """Yield a few flows that together show all sides, each with the sides that earlier ones do not show."""
    known = {side for choice in before for side in choice.sides}
    for index in cover([choice.sides for choice in choices], known):
        steps, sides, *_ = choices[index]
        new = sides - known
        known |= sides
        if len(steps) > 1 and new <= _shown(steps[:1], member, search):
            steps = steps[:1]
        if new:
            yield Choice(steps, new)


def _shown(steps: Steps, member: Member, search: Search) -> frozenset[Side]:
    """Return the sides of a member's rules that a flow shows."""
    sides = {place: number for number, place in enumerate(member.places)}
    shown: set[Side] = set()
    for goals in search.goals_of(steps, rules_of(member)):
        shown = {side_of(goal, sides) for goal in goals.near}
    return frozenset(shown)


def _hits(sides: Iterable[Side], rule: int) -> bool:
    """Return whether a rule is among those that match."""
    return any(at == rule and side == HIT for at, _, side in sides)


def _coming_back(first: Step) -> Steps:
    """Return a flow in which a client connects several times, so that rules with affinity remember it."""
    assert isinstance(first, Send)
    port = first.packet.sport
    if not isinstance(port, int):
        return (first,)
    more = [replace(first.packet, sport=port + number * _APART) for number in range(1, _CONNECTIONS)]
    return (first, *(Send(packet=packet, entry=first.entry) for packet in more))
