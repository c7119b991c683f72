"""Connections that the replayer deletes between flows, so that no flow influences another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backends.model.flow import Again, Flow, Repeated, Send
from tests.unit.backends.replay.helpers.fakenode import TCP, UDP, Forgetful, Node, forgotten, out, replay_all


@pytest.mark.parametrize(
    ("second", "times"),
    [
        (UDP, 1),
        (replace(UDP, sport=11), 0),
        (replace(UDP, sport=20, dport=99), 1),  # the first one's destination port
        (TCP, 0),
    ],
)
def test_flows_that_could_meet_are_kept_apart(second, times):
    assert forgotten(lambda p: [out(p)], UDP, second) == times


def test_flows_that_get_another_source_port_are_kept_apart():
    """However many ports the range has, the next flow must find them all free."""
    other = replace(UDP, sport=11)
    third = replace(other, sport=12)
    assert forgotten(lambda p: [out(replace(p, sport=555))], TCP, replace(TCP, sport=11)) == 1
    # Sent in one burst, they are all sent again, each on a node that knows of no other.
    assert forgotten(lambda p: [out(replace(p, sport=555))], UDP, other, third) == 3


@pytest.mark.parametrize("gives_ports", [False, True])
def test_flows_that_rules_may_give_the_same_source_port_are_kept_apart(gives_ports):
    loader = Forgetful()
    loader.gives_ports = gives_ports
    flows = [Flow(id=str(n), steps=(Send(packet=replace(TCP, sport=n), entry="a"),)) for n in (10, 11, 12)]
    replay_all(Node(lambda p: [out(p)]), flows, loader)
    assert loader.times == (2 if gives_ports else 0)


def test_connections_are_forgotten_one_by_one_where_no_others_are_left():
    loader = Forgetful(alone=True)
    other = replace(UDP, sport=77)
    steps = (Send(packet=UDP, entry="a"), Again(), Again())
    flows = [Flow(id=str(n), steps=steps) for n in range(3)]
    flows += [Flow(id=f"{n} more", steps=(*steps, Send(packet=other, entry="a"))) for n in range(2)]
    replay_all(Node(lambda p: [out(p)]), flows, loader)
    port = UDP.sport
    assert (loader.times, loader.left) == (0, [[port], [port], [port], [port, 77]])


def test_all_connections_are_forgotten_where_they_are_many_or_unknown():
    loader = Forgetful(alone=True)
    steps = tuple(Send(packet=replace(UDP, sport=port), entry="a") for port in range(20, 29))
    replay_all(Node(lambda p: [out(p)]), [Flow(id=str(n), steps=steps) for n in range(2)], loader)
    assert (loader.times, loader.left) == (1, [])
    assert forgotten(lambda p: [out(p)], UDP, UDP) == 1  # by a loader that says that others may be left


def test_one_connection_is_forgotten_where_that_is_enough():
    """A flow that got another source port, and one that is sent again after a burst."""
    loader = Forgetful(single=True)
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in range(10, 19)]
    node = Node(lambda p: [out(replace(p, sport=555) if p.sport == 12 else p)])
    results = replay_all(node, flows, loader)
    assert [r.branches[0].outcomes[0].sport for r in results] == [10, 11, 555, 13, 14, 15, 16, 17, 18]
    assert [p.sport for p in node.sent] == [*range(10, 19), 12]
    assert (loader.times, loader.forgotten) == (0, [12, 12])


def test_one_connection_is_not_enough_where_another_has_the_same_port():
    """The first arrives where the second comes from, which it could meet when it is sent again."""
    loader = Forgetful(single=True)
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in (10, 11, 12)]
    replay_all(Node(lambda p: [out(replace(p, dport=11))]), flows, loader)
    assert loader.times == 1


def test_any_two_flows_could_meet_in_a_list():
    loader = Forgetful(lists=True)
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    replay_all(Node(lambda p: []), flows, loader)
    assert loader.emptied == 2


def test_lists_are_emptied_where_an_earlier_flow_may_be_in_one() -> None:
    flows = [Flow(id=str(n), steps=(Send(packet=replace(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    watching = Forgetful(lists=True)
    watching.watches, watching.fills = True, False
    replay_all(Node(lambda p: [out(p)]), flows, watching)
    assert watching.emptied == 0, "what was watched has filled none"
    replay_all(Node(lambda p: [out(p)]), [Repeated(flows[0], 2), flows[1]], watching)
    assert watching.emptied == 2, "only the first run was watched"
    told = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(f, 1, lists=f.id == "2") for f in flows], told)
    assert told.emptied == 1, "the reference says which flows are in a list"
