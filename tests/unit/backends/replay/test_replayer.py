"""The replayer's conclusions from packets that it sees, on a node with made-up answers.

A real kernel rarely makes the mistakes that must not go unnoticed; this one makes them on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import cycle
from typing import Any, cast

import pytest

from backends.model.flow import Again, Flow, IcmpError, Pause, Repeated, Reply, Send
from backends.model.outcome import FlowResult, Verdict
from backends.model.packet import Packet
from backends.model.withfields import with_fields
from backends.replay.loader import Loader, Watched
from backends.replay.pipe import pack_flows, pack_results, unpack_flows, unpack_results
from backends.replay.replayer import Replayer
from backends.testbed.tapnode import Sighting, TapNode
from backends.wire.frames import build
from backends.wire.parsing import parse
from translate.errors import MachineError
from translate.ir import Family, TcpFlag

UDP = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=10, dport=20)
TCP = Packet(family=Family.IP, src=1, dst=2, proto=6, sport=10, dport=20)
Behaviour = Callable[[Packet], list[Sighting]]


def out(packet: Packet, device: str | None = "b", *, mark: int | None = 0) -> Sighting:
    return Sighting(build(packet), device, mark)


class Node:
    """Answers each packet as ``behaviour`` says; what ``late`` says comes with settling."""

    family = Family.IP

    def __init__(self, behaviour: Behaviour, late: Behaviour | None = None) -> None:
        self._behaviour, self._late = behaviour, late
        self._now: list[Sighting] = []
        self._later: list[Sighting] = []
        self.sent: list[Packet] = []
        self.slept = 0.0
        self.processors: list[int] = []

    def run_on(self, cpu: int) -> None:
        self.processors.append(cpu)

    def listen(self, proto: int) -> None:
        pass

    def inject(
        self, device: str, data: bytes, *, source: int | None = None, destination: int | None = None
    ) -> None:
        if device != "a":
            raise KeyError(device)
        self._take(parse(data).packet)

    def originate(self, data: bytes, *, mark: int, uid: int = 0, gid: int = 0) -> int:
        self._take(with_fields(parse(data).packet, mark=mark))
        return 0

    def _take(self, packet: Packet) -> None:
        self.sent.append(packet)
        self._now += self._behaviour(packet)
        if self._late is not None:
            self._later += self._late(packet)

    def drain(self, at_most: int = 1) -> list[Sighting]:
        now, self._now = self._now, []
        return now

    def settle(self) -> list[Sighting]:
        now, self._later = self._later, []
        return self.drain() + now

    def wait(self, seconds: float) -> None:
        self.slept += seconds


class Forgetful:
    """Forgets all, and if it may, single connections."""

    def __init__(self, *, lists: bool = False, single: bool = False, alone: bool = False) -> None:
        self.lists = lists
        self.watches = False
        self.pins = False
        self.gap = 0.0
        self.times = 0
        self.emptied = 0
        self.looked = 0
        self.single = single
        self.alone = alone
        self.left: list[list[object]] = []
        self.fills = True
        self.forgotten: list[object] = []

    def forget_one(self, tap: object, sent: Packet) -> bool:
        self.forgotten.append(sent.sport)
        return self.single

    def forget_all(self, tap: object, sent: Sequence[Packet]) -> bool:
        self.left.append([packet.sport for packet in sent])
        return self.alone

    def forget_connections(self, tap: object) -> None:
        self.times += 1

    def forget_lists(self) -> None:
        self.emptied += 1

    def watch(self) -> None:
        self.looked += 1

    def watched(self) -> Watched:
        return Watched(Fraction(1, 3), lists=self.fills)


def replay_all(
    node: Node, flows: Sequence[Flow | Repeated], loader: Forgetful | None = None
) -> list[FlowResult]:
    """Replay as a session does: the flows, and what became of them, travel as bytes."""
    replayer = Replayer(cast(TapNode, node), cast(Loader, loader or Forgetful()))
    flows_there = unpack_flows(pack_flows(flows, node.family))
    return unpack_results(pack_results(replayer.replay(flows_there)))


def replay(node: Node, *steps, entry="a", packet=UDP, loader=None):
    flow = Flow(id="f", steps=(Send(packet=packet, entry=entry), *steps))
    (result,) = replay_all(node, [flow], loader)
    return result.branches[0].outcomes, result.notes


def icmp(packet: Packet, kind: int, code: int) -> Packet:
    return Packet(
        family=Family.IP, src=9, dst=packet.src, proto=1, icmp_type=kind, icmp_code=code, quoted=packet
    )


def test_a_sound_packet_has_no_notes():
    (outcome,), notes = replay(Node(lambda p: [out(with_fields(p, ttl=63), mark=7)]))
    assert (outcome.verdict, outcome.out, outcome.ttl, outcome.mark) == (Verdict.FORWARD, "b", 63, 7)
    assert (outcome.dnat, outcome.snat) == (False, False)
    assert notes == ()


@pytest.mark.parametrize(
    ("change", "dnat", "snat"),
    [
        ({"src": 8}, False, True),
        ({"sport": 8}, False, True),
        ({"dst": 8}, True, False),
        ({"dport": 8}, True, False),
        ({"src": 8, "dport": 8}, True, True),
    ],
)
def test_translation_is_what_differs(change, dnat, snat):
    (outcome,), _ = replay(Node(lambda p: [out(with_fields(p, **change))]))
    assert (outcome.dnat, outcome.snat) == (dnat, snat)


def test_a_wrong_checksum_is_noted():
    def forget_checksum(packet: Packet) -> list[Sighting]:
        data = bytearray(build(packet))
        data[19] ^= 1  # an address changed, and neither checksum with it
        return [Sighting(bytes(data), "b", 0)]

    (outcome,), notes = replay(Node(forget_checksum))
    assert outcome.dnat
    assert notes == ("step 1: wrong IP header checksum on b", "step 1: wrong UDP checksum on b")


def test_a_checksum_that_was_to_be_wrong_is_not_noted():
    node = Node(lambda p: [out(with_fields(p, bad_checksum=True))])
    (outcome,), notes = replay(node, packet=with_fields(UDP, bad_checksum=True))
    assert outcome.verdict is Verdict.FORWARD
    assert notes == ()


def test_nor_is_that_of_a_packet_for_which_the_stack_chose_a_source():
    def choose(packet: Packet) -> list[Sighting]:
        return [out(with_fields(packet, src=7, bad_checksum=True))]

    (outcome,), notes = replay(Node(choose), entry=None, packet=with_fields(UDP, src=0))
    assert (outcome.src, notes) == (7, ())


def test_a_timestamp_that_the_stack_answers_is_no_stray():
    asked = Packet(family=Family.IP, src=1, dst=2, proto=1, icmp_type=13, icmp_code=0, icmp_id=5)

    def answer(packet: Packet) -> list[Sighting]:
        told = with_fields(packet, src=packet.dst, dst=packet.src, icmp_type=14)
        return [out(packet, None), out(told, "a")]

    (outcome,), notes = replay(Node(answer), packet=asked)
    assert (outcome.verdict, notes) == (Verdict.LOCAL, ())


def test_wrong_checksum_in_a_rejection_is_noted():
    def reject(packet: Packet) -> list[Sighting]:
        return [out(with_fields(icmp(packet, 3, 3), bad_checksum=True), "a")]

    (outcome,), notes = replay(Node(reject))
    assert outcome.reject_with == "icmp-port-unreachable"
    assert notes == ("step 1: wrong ICMP checksum on a, in the answer",)


def test_a_rejection_may_quote_a_checksum_that_was_to_be_wrong():
    def reject(packet: Packet) -> list[Sighting]:
        return [out(icmp(with_fields(packet, bad_checksum=True), 3, 3), "a")]

    (outcome,), notes = replay(Node(reject), packet=with_fields(UDP, bad_checksum=True))
    assert outcome.reject_with == "icmp-port-unreachable"
    assert notes == ()


def test_a_rejected_reset_is_no_stray():
    """The RST of REJECT goes through OUTPUT, where a rule may reject it in turn."""

    def reject(packet: Packet) -> list[Sighting]:
        end = packet.seq + len(packet.payload) + 1
        reset = with_fields(TCP, src=2, dst=1, sport=20, dport=10, ack=end, flags=TcpFlag.RST | TcpFlag.ACK)
        return [out(reset, "a"), out(icmp(reset, 3, 2), "b")]

    (outcome,), notes = replay(Node(reject), packet=TCP)
    assert outcome.reject_with == "tcp-reset"
    assert notes == ()


def test_a_second_copy_is_a_stray():
    (outcome,), notes = replay(Node(lambda p: [out(p), out(p, "c")]))
    assert outcome.out == "b"
    assert notes == ("step 1: stray frame on c: udp 0.0.0.1:10 > 0.0.0.2:20",)


def test_frames_of_somebody_else_are_strays():
    other = with_fields(UDP, payload=b"other", src=5)
    (outcome,), notes = replay(Node(lambda p: [out(other)]))
    assert outcome.verdict is Verdict.DROP
    assert notes == ("step 1: stray frame on b: udp 0.0.0.5:10 > 0.0.0.2:20",)


def test_an_error_for_another_packet_is_no_rejection():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(with_fields(p, payload=b"old"), 3, 3), "a")]))
    assert outcome.verdict is Verdict.DROP
    assert len(notes) == 1


def test_garbage_is_noted():
    (outcome,), notes = replay(Node(lambda p: [Sighting(b"garbage", "b", 0)]))
    assert outcome.verdict is Verdict.DROP
    assert "unreadable frame on b" in notes[0]


def test_a_mark_that_was_not_seen_is_noted():
    (outcome,), notes = replay(Node(lambda p: [out(p, mark=None)]))
    assert outcome.mark is None
    assert notes == ("step 1: no mark seen on b",)


def test_leaving_wins_over_an_error():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(p, 3, 3), "a"), out(p)]))
    assert outcome.verdict is Verdict.FORWARD
    assert len(notes) == 1


@pytest.mark.parametrize("code", [2, 3])
def test_the_stack_refusing_what_it_delivered_is_expected(code):
    (outcome,), notes = replay(Node(lambda p: [out(p, None), out(icmp(p, 3, code), "a")]))
    assert outcome.verdict is Verdict.LOCAL
    assert notes == ()


def test_prohibited_after_delivery_is_not_expected():
    (outcome,), notes = replay(Node(lambda p: [out(p, None), out(icmp(p, 3, 13), "a")]))
    assert outcome.verdict is Verdict.LOCAL
    assert len(notes) == 1


def test_what_settles_late_counts():
    (outcome,), _ = replay(Node(lambda p: [], late=lambda p: [out(p, None)]), entry=None)
    assert outcome.verdict is Verdict.LOCAL


@pytest.mark.parametrize(
    ("kind", "code", "expected"), [(3, 0, "icmp-net-unreachable"), (3, 4, "icmp-3-4"), (11, 0, "icmp-11-0")]
)
def test_kinds_of_rejection(kind, code, expected):
    (outcome,), _ = replay(Node(lambda p: [out(icmp(p, kind, code), "a")]))
    assert (outcome.verdict, outcome.reject_with) == (Verdict.REJECT, expected)


def test_a_redirect_is_no_rejection():
    (outcome,), notes = replay(Node(lambda p: [out(icmp(p, 5, 1), "a")]))
    assert outcome.verdict is Verdict.DROP
    assert notes == ()


def reset(packet: Packet, **fields: Any) -> Packet:
    start = with_fields(packet, src=packet.dst, dst=packet.src, sport=packet.dport, dport=packet.sport)
    return with_fields(start, flags=TcpFlag.RST | TcpFlag.ACK, seq=0, payload=b"", **fields)


def test_a_reset_must_fit_the_segment():
    (outcome,), _ = replay(Node(lambda p: [out(reset(p, ack=p.seq + 1), "a")]), packet=TCP)
    assert outcome.reject_with == "tcp-reset"
    (outcome,), notes = replay(Node(lambda p: [out(reset(p, ack=p.seq), "a")]), packet=TCP)
    assert outcome.verdict is Verdict.DROP
    assert len(notes) == 1


def test_a_reset_to_an_acknowledgement_takes_its_number():
    packet = with_fields(TCP, flags=TcpFlag.ACK, ack=77)
    (outcome,), _ = replay(Node(lambda p: [out(with_fields(reset(p), seq=77), "a")]), packet=packet)
    assert outcome.reject_with == "tcp-reset"
    (outcome,), _ = replay(Node(lambda p: [out(with_fields(reset(p), seq=78), "a")]), packet=packet)
    assert outcome.verdict is Verdict.DROP


def test_answers_and_pauses():
    node = Node(lambda p: [out(p, "a" if p.src == 2 else "b")])
    node.inject = lambda device, data, **_: node._take(parse(data).packet)  # type: ignore[method-assign]
    outcomes, notes = replay(node, Reply(), Pause(seconds=2.5), IcmpError(type=3, code=3))
    assert [o.verdict for o in outcomes] == [Verdict.FORWARD] * 3
    assert [(p.src, p.dst) for p in node.sent] == [(1, 2), (2, 1), (1, 2)]
    assert outcomes[2].quoted.src == 2
    assert node.slept == 2.5
    assert notes == ()


def test_nothing_out_nothing_answered():
    outcomes, _ = replay(Node(lambda p: []), Reply(), IcmpError(type=3, code=3))
    assert [o.verdict for o in outcomes] == [Verdict.DROP, Verdict.UNSENT, Verdict.UNSENT]


def test_an_unknown_interface_is_an_error():
    with pytest.raises(MachineError, match="no interface 'z'"):
        replay(Node(lambda p: []), entry="z")


@pytest.mark.parametrize(
    ("second", "times"),
    [
        (UDP, 1),
        (with_fields(UDP, sport=11), 0),
        (with_fields(UDP, sport=20, dport=99), 1),  # the first one's destination port
        (TCP, 0),
    ],
)
def test_flows_that_could_meet_are_kept_apart(second, times):
    assert forgotten(lambda p: [out(p)], UDP, second) == times


def test_flows_that_get_another_source_port_are_kept_apart():
    """However many ports the range has, the next flow must find them all free."""
    other = with_fields(UDP, sport=11)
    third = with_fields(other, sport=12)
    assert forgotten(lambda p: [out(with_fields(p, sport=555))], TCP, with_fields(TCP, sport=11)) == 1
    # Sent in one burst, they are all sent again, each on a node that knows of no other.
    assert forgotten(lambda p: [out(with_fields(p, sport=555))], UDP, other, third) == 3


def test_connections_are_forgotten_one_by_one_where_no_others_are_left():
    loader = Forgetful(alone=True)
    other = with_fields(UDP, sport=77)
    steps = (Send(packet=UDP, entry="a"), Again(), Again())
    flows = [Flow(id=str(n), steps=steps) for n in range(3)]
    flows += [Flow(id=f"{n} more", steps=(*steps, Send(packet=other, entry="a"))) for n in range(2)]
    replay_all(Node(lambda p: [out(p)]), flows, loader)
    port = UDP.sport
    assert (loader.times, loader.left) == (0, [[port], [port], [port], [port, 77]])


def test_all_connections_are_forgotten_where_they_are_many_or_unknown():
    loader = Forgetful(alone=True)
    steps = tuple(Send(packet=with_fields(UDP, sport=port), entry="a") for port in range(20, 29))
    replay_all(Node(lambda p: [out(p)]), [Flow(id=str(n), steps=steps) for n in range(2)], loader)
    assert (loader.times, loader.left) == (1, [])
    assert forgotten(lambda p: [out(p)], UDP, UDP) == 1  # by a loader that says that others may be left


def test_one_connection_is_forgotten_where_that_is_enough():
    """A flow that got another source port, and one that is sent again after a burst."""
    loader = Forgetful(single=True)
    flows = [
        Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in range(10, 19)
    ]
    node = Node(lambda p: [out(with_fields(p, sport=555) if p.sport == 12 else p)])
    results = replay_all(node, flows, loader)
    assert [r.branches[0].outcomes[0].sport for r in results] == [10, 11, 555, 13, 14, 15, 16, 17, 18]
    assert [p.sport for p in node.sent] == [*range(10, 19), 12]
    assert (loader.times, loader.forgotten) == (0, [12, 12])


def test_one_connection_is_not_enough_where_another_has_the_same_port():
    """The first arrives where the second comes from, which it could meet when it is sent again."""
    loader = Forgetful(single=True)
    flows = [
        Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in (10, 11, 12)
    ]
    replay_all(Node(lambda p: [out(with_fields(p, dport=11))]), flows, loader)
    assert loader.times == 1


def changed_back(packet: Packet) -> Packet:
    """The same, but the payload, by which the two ways of sending differ."""
    return with_fields(packet, payload=b"")


ON_ITS_WAY: dict[str, Behaviour] = {
    "leaves": lambda p: [out(with_fields(p, dst=7, dport=70, ttl=63), mark=5)],
    "is delivered": lambda p: [out(with_fields(p, src=8), None)],
    "is dropped, every third": lambda p: [] if isinstance(p.sport, int) and p.sport % 3 == 0 else [out(p)],
    "is dropped": lambda p: [],
    "is answered": lambda p: [out(icmp(p, 3, 3), "a")],
    "is delivered and answered": lambda p: [out(p, None), out(icmp(p, 3, 3), "a")],
    "leaves twice": lambda p: [out(p), out(p, "c")],
    "leaves with another port": lambda p: [out(with_fields(p, sport=555))],
    "leaves without a mark": lambda p: [out(p, mark=None)],
    "leaves with a wrong checksum": lambda p: [out(with_fields(p, bad_checksum=p.sport == 12))],
    "leaves cut short": lambda p: [Sighting(build(p)[:-3] if p.sport == 12 else build(p), "b", 0)],
    "leaves with a stranger": lambda p: [
        out(p),
        *([out(with_fields(p, payload=b"who"))] if p.sport == 12 else []),
    ],
    "leaves with something else": lambda p: [out(p), Sighting(b"short", "b", 0)][: 1 + (p.sport == 12)],
}


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("what", ON_ITS_WAY)
def test_flows_that_are_sent_at_once_come_to_the_same(what: str, family: Family) -> None:
    node, single = Node(ON_ITS_WAY[what]), Node(ON_ITS_WAY[what])
    node.family = single.family = family
    packets = [with_fields(UDP, sport=n, family=family) for n in range(10, 19)]
    flows = [Flow(id=str(n), steps=(Send(packet=p, entry="a"),)) for n, p in enumerate(packets)]
    at_once = replay_all(node, flows)
    one_by_one = [replay_all(single, [flow])[0] for flow in flows]
    assert [r.branches for r in at_once] == [r.branches for r in one_by_one]
    assert [len(r.notes) for r in at_once] == [len(r.notes) for r in one_by_one]
    first = [changed_back(p) for p in node.sent[: len(flows)]]
    assert first == [changed_back(p) for p in single.sent]


def test_a_flow_that_a_rule_leads_to_another_ones_port_is_no_neighbour_of_it() -> None:
    """A flow's ports on arrival are only known afterwards; so the other flow is sent again, alone."""
    node, loader = Node(lambda p: [out(with_fields(p, dport=11))]), Forgetful()
    flows = [
        Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in (10, 11, 12)
    ]
    results = replay_all(node, flows, loader)
    assert [p.sport for p in node.sent] == [10, 11, 12, 11]
    assert loader.times == 1
    assert [r.branches[0].outcomes[0].sport for r in results] == [10, 11, 12]


def test_where_nothing_is_certain_no_more_is_sent_at_once() -> None:
    node = Node(lambda p: [])
    flows = [
        Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in range(100, 300)
    ]
    assert {r.branches[0].outcomes[0].verdict for r in replay_all(node, flows)} == {Verdict.DROP}
    assert len(node.sent) == 200 + 64


def forgotten(behaviour: Behaviour, *packets: Packet) -> int:
    node, loader = Node(behaviour), Forgetful()
    flows = [Flow(id=str(n), steps=(Send(packet=p, entry="a"),)) for n, p in enumerate(packets)]
    replay_all(node, flows, loader)
    return loader.times


def test_any_two_flows_could_meet_in_a_list():
    loader = Forgetful(lists=True)
    flows = [Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    replay_all(Node(lambda p: []), flows, loader)
    assert loader.emptied == 2


THRICE = Flow(id="f", steps=(Send(packet=UDP, entry="a"),))


def test_a_repeated_flow_comes_to_every_way_that_it_went_with_its_share() -> None:
    ways = cycle(("b", "b", "c"))
    node = Node(lambda p: [out(p, next(ways))])
    (result,) = replay_all(node, [Repeated(THRICE, 6)])
    shares = {branch.outcomes[0].out: branch.probability for branch in result.branches}
    assert shares == {"b": Fraction(2, 3), "c": Fraction(1, 3)}
    assert (result.runs, len(node.sent)) == (6, 6)
    assert len({(p.src, p.sport, p.payload) for p in node.sent}) == 1, "the same packet each time"


def test_nothing_of_a_run_is_left_for_the_next_one() -> None:
    loader = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5)], loader)
    assert (loader.forgotten, loader.times, loader.emptied) == ([10] * 4, 4, 4)
    single = Forgetful(single=True)
    both = Repeated(Flow(id="f", steps=(*THRICE.steps, Reply())), 3)
    replay_all(Node(lambda p: [out(with_fields(p, dport=21) if p.src == 1 else p, "a")]), [both], single)
    assert (single.forgotten, single.times) == ([10, 21] * 2, 0), "every packet's own connection alone"
    careless = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5, lists=False)], careless)
    assert (careless.times, careless.emptied) == (4, 0), "the reference says that nothing is in a list"


def test_the_first_run_is_watched_and_tells_of_lists() -> None:
    loader = Forgetful(lists=True)
    loader.watches = True
    (result,) = replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 5, lists=False)], loader)
    assert (loader.looked, loader.emptied) == (1, 4)
    assert (result.rarest, result.lists) == (Fraction(1, 3), True)


def test_lists_are_emptied_where_an_earlier_flow_may_be_in_one() -> None:
    flows = [Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    watching = Forgetful(lists=True)
    watching.watches, watching.fills = True, False
    replay_all(Node(lambda p: [out(p)]), flows, watching)
    assert watching.emptied == 0, "what was watched has filled none"
    replay_all(Node(lambda p: [out(p)]), [Repeated(flows[0], 2), flows[1]], watching)
    assert watching.emptied == 2, "only the first run was watched"
    told = Forgetful(lists=True)
    replay_all(Node(lambda p: [out(p)]), [Repeated(f, 1, lists=f.id == "2") for f in flows], told)
    assert told.emptied == 1, "the reference says which flows are in a list"


def test_datagrams_are_not_sent_at_once_where_each_is_watched() -> None:
    loader = Forgetful()
    loader.watches = True
    flows = [Flow(id=str(n), steps=(Send(packet=with_fields(UDP, sport=n), entry="a"),)) for n in (1, 2, 3)]
    assert len(replay_all(Node(lambda p: [out(p)]), flows, loader)) == loader.looked == 3


def test_notes_of_all_runs_are_told_once() -> None:
    (result,) = replay_all(Node(lambda p: [out(p, mark=None)]), [Repeated(THRICE, 3)])
    assert result.notes == ("step 1: no mark seen on b",)


def test_more_runs_of_a_flow_are_joined_to_those_before() -> None:
    (first,) = replay_all(Node(lambda p: [out(p)]), [Repeated(THRICE, 3)])
    (more,) = replay_all(Node(lambda p: [out(p, "c")]), [Repeated(THRICE, 1)])
    joined = first.joined(more)
    assert joined.runs == 4
    assert [branch.probability for branch in joined.branches] == [Fraction(3, 4), Fraction(1, 4)]


@pytest.mark.parametrize("pins", [False, True])
def test_packets_are_sent_from_their_processor_if_rules_test_it(pins):
    node, loader = Node(lambda p: [out(p)]), Forgetful()
    loader.pins = pins
    steps = tuple(Send(packet=with_fields(UDP, cpu=cpu), entry="a") for cpu in (1, 0))
    replay_all(node, [Flow(id="both", steps=steps)], loader)
    assert node.processors == ([1, 0] if pins else [])
