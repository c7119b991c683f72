"""Flows that enter the rules at one place share their runs; those of other services run once."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from backends.model.flow import Flow, Reply, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet, PortClass
from harness.diff.entrances import lightly, shared_runs
from harness.diff.sampling import RESEMBLED_MISS
from translate.ir import Family

HALF = Fraction(1, 2)


def flow(name: str, *, src: int = 1, dport: int = 53, entry: str | None = "eth0", replies: int = 0) -> Flow:
    packet = Packet(family=Family.IP, src=src, dst=9, proto=17, sport=40000 + src, dport=dport)
    return Flow(id=name, steps=(Send(packet=packet, entry=entry), *(Reply(),) * replies))


def to(*ends: int, of: Flow, masqueraded: int | None = None) -> FlowResult:
    packet = of.first.packet
    ways = []
    for end in ends:
        outcome = Outcome(
            verdict=Verdict.FORWARD, out="a", src=packet.src, dst=end, sport=packet.sport, dport=80, dnat=True
        )
        if end == masqueraded:
            outcome = replace(outcome, src=77, sport=PortClass(1024, 65535), snat=True)
        ways.append(OutcomeBranch(Fraction(1, len(ends)), (outcome,) * len(of.steps)))
    return FlowResult(of.id, tuple(ways))


def brief(*pairs: tuple[Flow, FlowResult], alike: str = "abcdef") -> str:
    flows, results = zip(*pairs, strict=True)
    return "".join(sorted(shared_runs(flows, results, set(alike)).briefly))


def together(*pairs: tuple[Flow, FlowResult], alike: str = "abcdef") -> dict[str, int]:
    flows, results = zip(*pairs, strict=True)
    return {name: share.among for name, share in shared_runs(flows, results, set(alike)).together.items()}


def test_the_shortest_of_several_senders_runs_in_full() -> None:
    a, b, c = flow("a", replies=2), flow("b", src=2), flow("c", src=3)
    assert brief((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(6, 5, of=c))) == "ac"


def test_flows_of_the_first_service_run_in_full() -> None:
    a, b, c = flow("a"), flow("b", src=2), flow("c", src=3)
    assert brief((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c)), alike="bc") == "c"


def test_other_entrances_and_other_endpoints_have_a_full_flow_of_their_own() -> None:
    a, b, c, d = flow("a"), flow("b", dport=54), flow("c", entry=None), flow("d", src=2)
    assert brief((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c)), (d, to(5, 7, of=d))) == ""


def test_an_endpoint_that_reaches_itself_has_a_full_flow_of_its_own() -> None:
    a, b, c = flow("a"), flow("b", src=5), flow("c", src=6)
    own, other = to(5, 6, of=b, masqueraded=5), to(5, 6, of=c, masqueraded=6)
    assert brief((a, to(5, 6, of=a)), (b, own), (c, other)) == ""


def test_what_the_simulator_cannot_decide_runs_in_full() -> None:
    a, b, c = flow("a"), flow("b", src=2), flow("c", src=3)
    counted = [(f, replace(to(5, 6, of=f), dependent=True)) for f in (a, b, c)]
    assert brief(*counted) == ""


def test_a_flow_with_one_outcome_is_no_model_of_others() -> None:
    a, b, c = flow("a"), flow("b", src=2), flow("c", src=3)
    assert brief((a, to(5, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c))) == "c"


def test_flows_of_the_first_service_share_their_runs_with_those_of_the_same_choice_only() -> None:
    a, b, c, d = flow("a"), flow("b", src=2), flow("c", src=5), flow("d", dport=54)
    pairs = ((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c, masqueraded=5)))
    assert together(*pairs, (d, to(5, 6, of=d)), alike="") == {"a": 2, "b": 2, "c": 1, "d": 1}


def test_the_shortest_flows_of_all_choices_at_a_place_share_their_runs() -> None:
    a, b, c, d = flow("a", replies=1), flow("b", src=2), flow("c", src=5), flow("d", dport=54)
    pairs = ((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c, masqueraded=5)))
    assert together(*pairs, (d, to(5, 6, of=d))) == {"b": 2, "c": 2, "d": 1}


def test_each_choice_shows_what_no_earlier_one_shows() -> None:
    a, b, c = flow("a"), flow("b", src=5), flow("c", src=6)
    flows = (a, b, c)
    results = (to(5, 6, of=a), to(5, 6, of=b, masqueraded=5), to(5, 6, of=c, masqueraded=6))
    shares = shared_runs(flows, results, set("abc")).together
    assert {name: sorted(share.needed or ()) for name, share in shares.items()} == {
        "a": [0, 1],
        "b": [0],
        "c": [1],
    }
    assert {share.miss for share in shares.values()} == {RESEMBLED_MISS}
    assert all(share.needed is None for share in shared_runs(flows, results, set()).together.values())


def test_another_client_does_not_show_what_an_endpoint_reaches_that_chooses_itself() -> None:
    """Both are masqueraded at endpoint 5, each by a rule of its own."""
    a, b = flow("a"), flow("b", src=5)
    results = to(5, 6, of=a, masqueraded=5), to(5, 6, of=b, masqueraded=5)
    shares = shared_runs((a, b), results, {"a", "b"}).together
    assert (shares["a"].needed, shares["b"].needed) == (frozenset({0, 1}), frozenset({0}))


def test_flows_of_the_first_service_share_no_runs_with_those_of_others() -> None:
    a, b, c = flow("a"), flow("b", src=2), flow("c", src=3)
    assert together((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c)), alike="bc") == {
        "a": 1,
        "b": 1,
    }


def test_what_the_simulator_cannot_decide_shares_no_runs() -> None:
    a, b = flow("a"), flow("b", src=2)
    assert together(*[(f, replace(to(5, 6, of=f), dependent=True)) for f in (a, b)], alike="") == {}


def light(*pairs: tuple[Flow, FlowResult], alike: str = "abcdef") -> str:
    flows, results = zip(*pairs, strict=True)
    chosen = lightly(flows, results, set(alike))
    return "".join(flow.id for flow, its in zip(flows, chosen, strict=True) if its)


def test_of_flows_that_others_resemble_a_light_trial_has_the_shortest_to_each_destination() -> None:
    a, b, c, d = flow("a", replies=1), flow("b", src=2), flow("c", src=5), flow("d", dport=54)
    pairs = ((a, to(5, 6, of=a)), (b, to(5, 6, of=b)), (c, to(5, 6, of=c, masqueraded=5)), (d, to(5, of=d)))
    assert light(*pairs) == "bd"
    assert light(*pairs, alike="bcd") == "abd"


def test_a_light_trial_sends_from_outside_and_from_the_node_in_turn() -> None:
    places = [
        flow(name, dport=dport, entry=entry)
        for name, dport, entry in (
            ("a", 53, "eth0"),
            ("b", 53, None),
            ("c", 54, "eth0"),
            ("d", 54, None),
            ("e", 55, None),
            ("f", 56, "eth0"),
        )
    ]
    assert light(*[(f, to(5, of=f)) for f in places]) == "adef"


def test_a_light_trial_has_no_other_flow_that_no_rule_affects_but_those_left_open() -> None:
    a, b, c = flow("a"), flow("b", dport=54), flow("c", dport=55)
    passes = [
        OutcomeBranch(HALF * 2, (replace(to(9, of=f).branches[0].outcomes[0], dnat=False),)) for f in (a, b)
    ]
    dropped = FlowResult("b", (OutcomeBranch(HALF * 2, (Outcome(verdict=Verdict.DROP),)),))
    unknown = FlowResult("c", (OutcomeBranch(HALF * 2, (Outcome(verdict=Verdict.UNKNOWN),)),))
    assert light((a, FlowResult("a", (passes[0],))), (b, FlowResult("b", (passes[1],)))) == ""
    assert light((a, FlowResult("a", (passes[0],))), alike="") == "a"
    assert light((b, dropped), (c, unknown)) == "bc"
