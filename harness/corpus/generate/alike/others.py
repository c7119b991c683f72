"""Flows for the members of classes that are not searched.

Each member gets all flows of the corpus that hit a rule of its class's model, with its own constants in place
of the model's; for the trial of a plan, some of them. It gets further flows to show every side of its rules:
each rule matches at every hook, and each of its tests fails while the others hold. The simulator runs only
the flows that are needed to show this.
If they do not show what the model's flows show, the member differs from its model on this node, and is
returned without flows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from backends.model.flow import Send
from backends.simulator import Choices
from harness.corpus.generate.alike.classes import Classes
from harness.corpus.generate.alike.exchange import Exchange
from harness.corpus.generate.alike.followups import FollowUps
from harness.corpus.generate.alike.groups import Member
from harness.corpus.generate.alike.models import Choice, Model, Side, models, rules_of, side_of
from harness.corpus.generate.candidates.candidates import Steps
from harness.corpus.generate.goals import FlowGoals, Goal
from harness.corpus.generate.search import GoalFlow, Search

__all__ = ["other_flows"]


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
    kind of client that sends them. ``fewer``: without flows that show nothing that other flows do not.
    """
    sent = {steps for steps, _ in corpus}
    for group, model in zip(classes.classes, models(classes.classes, search, corpus, uses), strict=True):
        for member in group.others:
            yield member, _of(member, model, search, sent, fewer=fewer)


def _of(
    member: Member, model: Model, search: Search, sent: set[Steps], *, fewer: bool
) -> list[GoalFlow] | None:
    """Return the flows for a member; None if they miss a goal that the model's flows reach.

    ``sent`` has the flows of the corpus and of other members. Such a flow is repeated only if it is needed
    to reach a goal.
    """
    exchange = Exchange.of(model.member, member, search.places)
    rules = rules_of(member)
    sides = {place: number for number, place in enumerate(member.places)}
    flows: dict[Steps, GoalFlow] = {}
    shown: set[Side] = set()

    def is_left_out(flow: Steps, received: Steps | None) -> bool:
        """Return whether the node makes the flow with another's address, and receives the same packet."""
        first = flow[0]
        if not fewer or received is None or not isinstance(first, Send):
            return False
        other = exchange.steps(received)
        return (
            search.places.behind(first.packet.src) is not None and other is not None and search.can_try(other)
        )

    def show(choice: Choice, expected: frozenset[Side], likely: Choices = ()) -> Choices:
        """Add a flow if it shows a new side; return the choices of the branch that shows all of them."""
        made = exchange.steps(choice.steps)
        if made is None:
            return likely
        if is_left_out(made, choice.received):
            shown.update(expected)
            return likely
        by_side: dict[Side, Goal] = {}
        goals, last = FlowGoals(), likely
        for shown_here, choices in search.branch_goals(made, rules, likely):
            goals.add(shown_here)
            here = {side_of(goal, sides): goal for goal in shown_here.near}
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
        if made is None or made in sent or not search.can_try(made) or is_left_out(made, received):
            continue
        sent.add(made)
        if fewer and follow_ups.add(made) and model.at_first:
            continue
        table, chain, index = member.places[rule]
        own = goal._replace(table=table, chain=chain, rule=index)
        flows[made] = GoalFlow(own, search.rule(own.place), made, nothing, use)
    return list(flows.values())
