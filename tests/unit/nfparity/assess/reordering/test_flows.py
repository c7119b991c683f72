"""Flows that another order of registration cannot change."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest

from backends.model.contract import Job
from backends.model.flow import Again, Flow, Pause, Reply
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.simulator import Simulation
from nfparity.assess.assessing import detector_flows
from nfparity.assess.node.components import IPTABLES
from nfparity.assess.node.facts import Facts
from nfparity.assess.reordering import Reordering
from nfparity.kubeproxy.nftables import infer_config, nftables_mode
from translate.ir import Family, Field, TcpFlag, format_address
from translate.nftlisting import Listing, read_listing
from translate.read import read_ruleset

PLACE = {"family": "ip", "table": "t"}
DADDR: Any = {"payload": {"protocol": "ip", "field": "daddr"}}
SADDR: Any = {"payload": {"protocol": "ip", "field": "saddr"}}
MARK: Any = {"meta": {"key": "mark"}}
DNAT: Any = {"dnat": {"addr": "10.244.0.5"}}
MASQUERADE: Any = {"masquerade": None}
ELSEWHERE = "198.18.0.1"


def match(left: Any, right: Any, op: str = "==") -> Any:
    return {"match": {"op": op, "left": left, "right": right}}


def table(*chains: tuple[str, str, int, Sequence[list[Any]]], name: str = "t") -> Listing:
    """A table with base chains: type, hook, priority and rules."""
    place = PLACE | {"table": name}
    objects: list[Any] = [{"table": {"family": "ip", "name": name}}]
    for kind, hook, priority, rules in chains:
        base = {"name": f"{kind}_{hook}", "type": kind, "hook": hook, "prio": priority, "policy": "accept"}
        objects.append({"chain": place | base})
        objects += ({"rule": place | {"chain": base["name"], "expr": rule}} for rule in rules)
    return replace(read_listing(json.dumps({"nftables": objects}), name=name), source=f"ip {name}")


@pytest.fixture(scope="module")
def own(facts: Facts) -> Listing:
    config = infer_config(facts.state, facts.node)
    return read_listing(nftables_mode(facts.state, "1.36", config=config).text, name="own")


@pytest.fixture(scope="module")
def results(facts: Facts) -> dict[str, tuple[Flow, FlowResult]]:
    simulation = Simulation(Job(rules=facts.ruleset, node=facts.node))
    flows, measures, _ = detector_flows(facts)
    return {flow.id: (flow, simulation.simulate(flow)) for flow in flows.values() if flow.id not in measures}


@pytest.fixture(scope="module")
def changed(
    facts: Facts, own: Listing, results: dict[str, tuple[Flow, FlowResult]]
) -> Callable[..., set[str]]:
    """``changed(tables, later)``: the flows that may have another outcome."""

    def flows(tables: Sequence[Listing], later: Sequence[str] = ("ip t",)) -> set[str]:
        components = [(listing.source, listing) for listing in tables]
        reordering = Reordering(facts, components, own, later)
        return {name for name, pair in results.items() if reordering.may_change(*pair)}

    return flows


def nat(hook: str, *rules: list[Any]) -> tuple[str, str, int, Sequence[list[Any]]]:
    return "nat", hook, 100 if hook == "postrouting" else -100, rules


def passing(results: dict[str, tuple[Flow, FlowResult]]) -> set[str]:
    """Flows in which no packet is lost."""
    return {
        name
        for name, (_, result) in results.items()
        if all(o.verdict in (Verdict.FORWARD, Verdict.LOCAL) for b in result.branches for o in b.outcomes)
    }


def test_a_rule_that_no_packet_matches_changes_no_flow(changed: Callable[..., set[str]]) -> None:
    unmatched = (
        nat("prerouting", [match(DADDR, ELSEWHERE), DNAT]),
        nat("output", [match(DADDR, ELSEWHERE), DNAT]),
    )
    assert not changed([table(*unmatched)])


def test_a_rule_before_routing_changes_flows_to_its_address(
    facts: Facts, changed: Callable[..., set[str]], results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    flow = next(f for f, _ in results.values() if facts.is_own(f.first.packet.dst) and f.first.entry)
    address = flow.first.packet.dst
    text = ".".join(str(address >> shift & 255) for shift in (24, 16, 8, 0))
    found = changed([table(nat("prerouting", [match(DADDR, text), DNAT]))])
    sent = {i for i, (f, _) in results.items() if f.first.packet.dst == address and f.first.entry}
    assert flow.id in found
    assert sent <= found
    assert all(results[i][0].first.packet.dst == address for i in found & passing(results))


def test_rules_after_routing_see_the_endpoint(
    changed: Callable[..., set[str]], results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    pods = {"prefix": {"addr": "10.244.0.0", "len": 16}}
    masquerading = [[match(DADDR, pods), {"return": None}], [MASQUERADE]]
    found = changed([table(nat("postrouting", *masquerading))])
    arrived = {
        name
        for name in passing(results)
        if all(
            o.dst is not None and o.dst >> 16 == 10 << 8 | 244
            for b in results[name][1].branches
            for o in b.outcomes
        )
    }
    assert arrived
    assert not found & {i for i in arrived if len(results[i][0].steps) == 1}
    assert {i for i in passing(results) if i not in arrived} <= found


@pytest.mark.parametrize("verdict", [Verdict.REJECT, Verdict.DROP])
def test_a_lost_packet_may_have_been_at_any_endpoint(
    verdict: Verdict,
    facts: Facts,
    own: Listing,
    results: dict[str, tuple[Flow, FlowResult]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All endpoints are looked at once for packets that differ in the address of a service only."""
    endpoints = {endpoint.address for service in facts.services for endpoint in service.endpoints}
    looks: list[Field] = []
    address = Reordering._address

    def counted(self: Reordering, field: Field, addresses: Set[int]) -> Any:
        looks.extend([field] if addresses >= endpoints else [])
        return address(self, field, addresses)

    monkeypatch.setattr(Reordering, "_address", counted)
    lost = OutcomeBranch(Fraction(1), (Outcome(verdict=verdict),))
    flows = [flow for flow, _ in results.values() if flow.id.startswith("K06/")]
    kinds = {replace(flow.first.packet, dst=0) for flow in flows}
    assert len(flows) > 2 * len(kinds)
    for matched in (*(format_address(Family.IP, e) for e in sorted(endpoints)[::5]), ELSEWHERE):
        looks.clear()
        moved = table(nat("postrouting", [match(DADDR, matched), {"snat": {"addr": "10.0.0.9"}}]))
        reordering = Reordering(facts, [("ip t", moved)], own, ("ip t",))
        found = {reordering.may_change(flow, FlowResult(flow.id, (lost,))) for flow in flows}
        assert found == {matched != ELSEWHERE}
        assert looks.count(Field.DADDR) == len(kinds)
        assert looks.count(Field.SADDR) == (len(kinds) if verdict is Verdict.REJECT else 0)


def test_an_answer_may_come_from_any_endpoint(
    facts: Facts, own: Listing, results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    rejected = OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.REJECT),))
    flows = [flow for flow, _ in results.values() if flow.id.startswith("K06/")]
    endpoint = format_address(Family.IP, max(e.address for s in facts.services for e in s.endpoints))
    for source, wanted in ((endpoint, True), (ELSEWHERE, False)):
        moved = table(nat("output", [match(SADDR, source), DNAT]))
        reordering = Reordering(facts, [("ip t", moved)], own, ("ip t",))
        received = [flow for flow in flows if flow.first.entry is not None]
        found = {reordering.may_change(flow, FlowResult(flow.id, (rejected,))) for flow in received}
        assert found == {wanted}


def test_a_mark_that_no_rule_sets_is_not_set(changed: Callable[..., set[str]]) -> None:
    marked = nat("postrouting", [match({"&": [MARK, 0x2000]}, 0x2000), MASQUERADE])
    setting = {"mangle": {"key": MARK, "value": {"|": [MARK, 0x2000]}}}
    assert not changed([table(marked)])
    assert changed([table(marked, ("filter", "prerouting", -150, [[setting]]))])
    unreached = nat("prerouting", [match(DADDR, ELSEWHERE), setting])
    assert not changed([table(marked, unreached)])
    assert changed([table(marked, nat("prerouting", [setting]))])


def test_chains_that_refuse_packets_change_no_flow_that_passes(
    changed: Callable[..., set[str]], results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    """At the priority of kube-proxy's own chain in FORWARD."""
    invalid = [[match({"ct": {"key": "state"}}, "invalid", "in"), {"drop": None}]]
    found = changed([table(("filter", "forward", 0, invalid))])
    assert found
    assert not found & passing(results)


def test_chains_that_do_more_than_refusing_change_every_flow(
    changed: Callable[..., set[str]], results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    marking = [[{"mangle": {"key": MARK, "value": 1}}]]
    assert changed([table(("filter", "forward", 0, marking))]) == {*results}
    rewriting = [[{"mangle": {"key": DADDR, "value": "10.0.0.9"}}]]
    assert changed([table(("filter", "prerouting", -300, rewriting))]) == {*results}


def test_components_that_stay_in_order_with_kube_proxy_do_not_count(changed: Callable[..., set[str]]) -> None:
    first = table(nat("postrouting", [MASQUERADE]), name="a")
    assert not changed([first, table(nat("prerouting", [match(DADDR, ELSEWHERE), DNAT]))])


def test_a_component_swaps_places_with_those_that_were_registered_after_it(
    changed: Callable[..., set[str]], results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    rejecting = ("filter", "forward", 7, [[{"reject": None}]])
    dropping = ("filter", "forward", 7, [[{"drop": None}]])
    tables = [table(rejecting), table(dropping, name="b")]
    lost = {*results} - passing(results)
    assert lost <= changed(tables, later=("ip t",))
    assert not changed(tables, later=("ip b",))


def test_flows_that_may_begin_otherwise_are_replayed(
    facts: Facts, own: Listing, results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    moved = table(nat("prerouting", [match(DADDR, ELSEWHERE), DNAT]))
    reordering = Reordering(facts, [("ip t", moved)], own, ("ip t",))
    name = min(passing(results))
    flow, result = results[name]
    two = replace(result, branches=tuple(replace(b, outcomes=b.outcomes[:1] * 2) for b in result.branches))
    alone = replace(result, branches=tuple(replace(b, outcomes=b.outcomes[:1]) for b in result.branches))
    steps: dict[str, tuple[Any, FlowResult]] = {
        "waits": (Pause(seconds=1), alone),
        "syn": (Reply(flags=TcpFlag.SYN), two),
        "answer": (Reply(), two),
        "again": (Again(), two),
    }
    found = {
        name: reordering.may_change(replace(flow, steps=(flow.first, step)), result)
        for name, (step, result) in steps.items()
    }
    assert found == {"waits": True, "syn": True, "answer": False, "again": False}


def test_rules_of_iptables_are_a_component_like_others(
    facts: Facts, own: Listing, results: dict[str, tuple[Flow, FlowResult]]
) -> None:
    rule = "-A PREROUTING -d 198.18.0.1/32 -j DNAT --to-destination 10.0.0.1"
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    for line, wanted in ((text, False), (text.replace("-d 198.18.0.1/32 ", ""), True)):
        rest = read_ruleset(line.encode(), name="rest")
        reordering = Reordering(facts, [(IPTABLES, rest)], own, (IPTABLES,))
        sent = [pair for pair in results.values() if pair[0].first.entry is not None]
        assert all(reordering.may_change(*pair) is wanted for pair in sent if pair[0].id in passing(results))


def test_kube_proxys_other_chains_do_nothing_but_refuse_packets(own: Listing) -> None:
    """No chain that they lead to, directly or by a map, changes a packet, a connection or a set."""
    lines = [line.split() for script in own.scripts for line in script.text.splitlines()]
    added: dict[str, list[list[str]]] = {}
    for words in lines:
        if words[:2] in (["add", "rule"], ["add", "element"]):
            added.setdefault(words[4], []).append([word.strip("{},;") for word in words[5:]])
    todo = [words[4] for words in lines if words[:2] == ["add", "chain"] and "filter" in words]
    assert len(todo) > 3
    reached: set[str] = set()
    while todo:
        name = todo.pop()
        reached.add(name)
        for words in added.get(name, ()):
            assert not {"dnat", "snat", "masquerade", "set", "update", "notrack"} & {*words}, words
            called = [after for before, after in pairwise(words) if before in ("jump", "goto")]
            maps = [word.removeprefix("@") for word in words if word.startswith("@")]
            todo += [each for each in (*called, *maps) if each not in reached]
    assert any("reject" in words for name in reached for words in added.get(name, ()))
