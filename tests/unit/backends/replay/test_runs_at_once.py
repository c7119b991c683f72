"""Runs of a flow at the same time, from source ports of their own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import cycle, islice
from typing import Any

import pytest

from backends.model.flow import Again, Flow, IcmpError, Pause, Repeated, Reply, Send
from backends.model.outcome import FlowResult, Verdict
from backends.model.packet import Packet
from backends.replay.runs_at_once import FEWEST, MOST, can_run_at_once, ports_for_runs
from backends.testbed.tapnode import Sighting
from tests.unit.backends.replay.helpers.fakenode import TCP, UDP, Behaviour, Forgetful, Node, out, replay_all

SPORT = 30000
ALL_PORTS = range(1 << 16)
FIRST = {proto: replace(packet, sport=SPORT) for proto, packet in (("tcp", TCP), ("udp", UDP))}


def flow(*steps: Reply | Again, packet: Packet = FIRST["udp"]) -> Flow:
    return Flow(id="f", steps=(Send(packet=packet, entry="a"), *steps))


def run(node: Node, of: Flow, times: int, loader: Forgetful | None = None) -> FlowResult:
    (result,) = replay_all(node, [Repeated(of, times, lists=False, ports=ALL_PORTS)], loader)
    return result


def translating() -> Behaviour:
    """Return the answers of a node that sends packets for 2:20 to 3:80 or 4:80, and replies back."""
    to = cycle((3, 4))
    chosen: dict[object, int] = {}

    def behave(packet: Packet) -> list[Sighting]:
        if packet.dport != 20:
            return [out(replace(packet, src=2, sport=20), "a")]
        if packet.sport not in chosen:
            chosen[packet.sport] = next(to)
        return [out(replace(packet, dst=chosen[packet.sport], dport=80), "a")]

    return behave


@pytest.mark.parametrize("proto", FIRST)
def test_each_run_has_a_port_of_its_own_and_is_described_with_the_port_of_the_flow(proto: str) -> None:
    node, loader = Node(translating()), Forgetful()
    result = run(node, flow(packet=FIRST[proto]), 6, loader)
    assert len({p.sport for p in node.sent}) == 6
    assert SPORT not in {p.sport for p in node.sent}
    shares = {(o.dst, o.dport, o.sport): b.probability for b in result.branches for o in b.outcomes}
    assert shares == {(3, 80, SPORT): Fraction(1, 2), (4, 80, SPORT): Fraction(1, 2)}
    assert (result.runs, result.notes, loader.forgotten) == (6, (), [])


@pytest.mark.parametrize("proto", FIRST)
def test_answers_and_later_packets_belong_to_their_run(proto: str) -> None:
    node = Node(translating())
    result = run(node, flow(Reply(), Again(), packet=FIRST[proto]), 8)
    assert [p.dport for p in node.sent] == [20] * 8 + [p.sport for p in node.sent[:8]] + [20] * 8
    assert [p.src for p in node.sent[8:16]] == [3, 4] * 4
    ends = {tuple((o.verdict, o.src, o.dst, o.sport, o.dport) for o in b.outcomes) for b in result.branches}
    forward = Verdict.FORWARD
    assert ends == {
        ((forward, 1, to, SPORT, 80), (forward, 2, 1, 20, SPORT), (forward, 1, to, SPORT, 80))
        for to in (3, 4)
    }


def test_a_picked_port_is_kept() -> None:
    picked = cycle((50001, 50002, 50003, 50004))
    result = run(Node(lambda p: [out(replace(p, src=9, sport=next(picked)))]), flow(), 4)
    assert sorted(o.sport for b in result.branches for o in b.outcomes if isinstance(o.sport, int)) == [
        50001,
        50002,
        50003,
        50004,
    ]


@pytest.mark.parametrize("times", [MOST + 1, 3 * MOST])
def test_many_runs_are_made_in_bursts(times: int) -> None:
    node = Node(translating())
    assert run(node, flow(), times).runs == times
    assert len({p.sport for p in node.sent}) == times


@pytest.mark.parametrize(
    "strange",
    [
        pytest.param([], id="lost"),
        pytest.param([("b", 0), ("b", 0)], id="twice"),
        pytest.param([("b", None)], id="without-mark"),
    ],
)
def test_what_is_not_certain_is_tried_again_one_by_one(strange: list[tuple[str, int | None]]) -> None:
    """The fifth packet meets something strange; then the runs are made from the port of the flow."""
    turns = iter(range(100))

    def behave(packet: Packet) -> list[Sighting]:
        if next(turns) != 4:
            return [out(packet)]
        return [out(packet, device, mark=mark) for device, mark in strange]

    node, loader = Node(behave), Forgetful()
    result = run(node, flow(), 6, loader)
    if strange == [("b", None)]:
        assert result.notes == ("step 1: no mark seen on b",)
        return
    assert [p.sport for p in node.sent[6:]] == [SPORT] * 6
    assert (len(result.branches), result.runs, loader.times > 0) == (1, 6, True)


@pytest.mark.parametrize(
    ("of", "setting"),
    [
        (flow(packet=replace(UDP, sport=600)), {}),
        (flow(packet=Packet(family=UDP.family, src=1, dst=2, proto=132, sport=SPORT, dport=20)), {}),
        (flow(), {"pins": True}),
        (flow(), {"gap": 0.001}),
        (flow(), {"port_boundaries": None}),
        (flow(), {"port_boundaries": (SPORT, SPORT + FEWEST - 1)}),
    ],
)
def test_runs_that_depend_on_more_than_the_packet_are_made_one_by_one(
    of: Flow, setting: dict[str, Any]
) -> None:
    node, loader = Node(lambda p: [out(p)]), Forgetful()
    for name, value in setting.items():
        setattr(loader, name, value)
    assert run(node, of, 5, loader).runs == 5
    assert {p.sport for p in node.sent} == {of.first.packet.sport}


def test_only_plain_connections_run_at_once() -> None:
    first = flow()
    assert can_run_at_once(first)
    other = Send(packet=replace(UDP, sport=SPORT + 1), entry="a")
    for step in (other, Pause(seconds=1), IcmpError(type=3, code=4)):
        assert not can_run_at_once(Flow(id="f", steps=(*first.steps, step)))
    assert can_run_at_once(Flow(id="f", steps=(*first.steps, *first.steps)))


def test_runs_have_no_port_that_a_rule_distinguishes_from_that_of_the_flow() -> None:
    node, loader = Node(lambda p: [out(p)]), Forgetful()
    loader.port_boundaries = (80, SPORT - 20, SPORT + 5, 40_000)
    request = Repeated(flow(), 30, lists=False, ports=range(SPORT - 4, 1 << 16))
    (result,) = replay_all(node, [request], loader)
    assert result.runs == 30
    assert {p.sport for p in node.sent} == set(range(SPORT - 4, SPORT + 5))
    assert loader.times > 0


def test_usual_ports_are_preferred() -> None:
    usual = ports_for_runs(ALL_PORTS)
    assert (usual.start, len(usual)) == (40_000, 4096)
    assert ports_for_runs(ALL_PORTS, range(42_000, 43_000)) == range(42_000, 43_000)
    assert ports_for_runs(range(44_000, 50_000)) == usual[4000:]
    assert ports_for_runs(range(44_095, 50_000)) == range(44_095, 44_095 + 4096)
    assert ports_for_runs(range(1000, 1030)) == range(1024, 1030)
    assert not ports_for_runs(range(1000))
    assert not ports_for_runs(range(2000, 3000), range(4000, 5000))


def test_ports_are_used_again_only_after_connections_are_forgotten() -> None:
    node, loader = Node(translating()), Forgetful()
    requests = [
        Repeated(Flow(id=str(n), steps=flow().steps), 64, lists=False, ports=ALL_PORTS) for n in range(160)
    ]
    replay_all(node, requests, loader)
    ports = [p.sport for p in node.sent]
    assert len(ports) == 160 * 64
    assert len(set(islice(ports, 4_000))) == 4_000
    assert loader.times == 2


def test_the_first_run_is_watched_and_the_others_are_made_at_once() -> None:
    loader = Forgetful(lists=True)
    loader.watches, loader.fills = True, False
    node = Node(translating())
    result = run(node, flow(), 9, loader)
    assert (loader.looked, result.runs, result.rarest) == (1, 9, Fraction(1, 3))
    assert [p.sport == SPORT for p in node.sent] == [True] + [False] * 8
