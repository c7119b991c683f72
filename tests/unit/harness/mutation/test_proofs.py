"""Proofs hold where they are used: what each argues with is looked up in the rules and translations."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

import pytest

import translate.bpf
import translate.nft
from harness.mutation.arenas import arena
from harness.mutation.bpf_faults import bpf_faults
from harness.mutation.fault import Fault
from harness.mutation.nft_faults import nft_faults
from harness.mutation.proofs import proof_of
from translate.ir import (
    ConnectionState,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Rule,
    TableName,
)
from translate.passes import lower

loaded = functools.cache(arena)


def proven(rules: str, kind: str, level: int, reason: str) -> Iterator[tuple[list[str], Fault]]:
    """The faults of a translation whose proof's reason begins so, each with the lines of the text."""
    program = lower(loaded(rules)[0].ruleset, level=level)
    text = translate.nft.emit(program).text if kind == "nft" else translate.bpf.emit(program).render()
    for fault in nft_faults(text) if kind == "nft" else bpf_faults(text):
        proof = proof_of(rules, f"{kind}-O{level}", fault)
        if proof is not None and proof.reason.startswith(reason):
            yield text.split("\n"), fault


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
@pytest.mark.parametrize(("kind", "level"), [("nft", 0), ("nft", 1), ("nft", 2), ("tc", 0), ("tc", 1)])
def test_one_endpoint(rules: str, kind: str, level: int) -> None:
    """The line behind the question calls the same chain, and asks nothing."""
    found = list(proven(rules, kind, level, "the service has one endpoint"))
    assert {"side", "list", "lost-test"} <= {fault.operator for _, fault in found}
    for lines, fault in found:
        at = fault.place.line
        if kind == "nft":
            (target,) = re.findall(r"jump \S+", fault.place.text)
            assert lines[at + 1].startswith(f"\t\t{target} ")
            continue
        call = at if fault.operator == "lost-call" else at + 1
        (target,) = re.findall(r"\(verdict = (\w+)\(", lines[call])
        assert lines[call - 1].startswith("\tif (recent(")
        assert lines[call + 4] == f"\tif ((verdict = {target}(skb, p)))"


def test_one_endpoint_is_not_said_of_the_rule_for_all() -> None:
    """Without the second call, which stands in no condition, clients that are new go nowhere."""
    keys = [
        f.place.text for _, f in proven("cluster", "tc", 1, "the service has") if f.operator == "lost-call"
    ]
    assert keys
    assert all(text.startswith("\t\tif ((verdict") for text in keys)


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_marked_before(rules: str) -> None:
    """The chains are called by one chain, whose rule before sets the same bit, and what that chain calls."""
    found = list(proven(rules, "nft", 2, "at this level only KUBE-EXT"))
    blocks = {fault.place.block for _, fault in found}
    assert len(blocks) == 4
    lines = found[0][0]
    (service,) = (block for block in blocks if "-SVC-" in block)
    (at,) = (n for n, line in enumerate(lines) if re.search(rf"(jump|goto) {service}\b", line))
    assert lines[at].startswith(f"\t\tjump {service} ")
    assert lines[at - 1].startswith("\t\tmeta mark set meta mark | 0x4000 ")
    (draw,) = (line for line in lines if f"@{service}_2 " in line)
    assert lines.index(draw) > lines.index(f"\tchain {service} {{")
    start = lines.index(f"\tmap {service}_2 {{")
    elements = range(start, lines.index("\t}", start))
    for endpoint in blocks - {service}:
        (at,) = (n for n, line in enumerate(lines) if re.search(rf"(jump|goto) {endpoint}\b", line))
        assert at in elements
    assert list(proven(rules, "nft", 1, "at this level only KUBE-EXT")) == []


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_marked_by_the_load_balancers_chain(rules: str) -> None:
    """From the only address's element to the endpoints, each step is the only one; the second marks."""
    found = list(proven(rules, "nft", 2, "who comes by the load balancer's address"))
    lines = found[0][0]
    (address,) = {fault.place.text.split(" . ")[1] for _, fault in found}
    (service,) = (
        line for line in lines if line.startswith(f"\t\t\t{address} . tcp . 8080 ") and "jump" in line
    )
    chain = service.rsplit(" ", 1)[1].rstrip(",")
    rule = body(lines, chain)
    assert len(rule) == 1
    inner = body(lines, re.findall(r"jump (\S+)", rule[0])[0])
    assert inner[0].startswith("meta mark set meta mark | 0x4000 ")
    assert inner[1].startswith("jump ")
    for _, fault in found:
        (lookup,) = (line for line in lines if f"@{fault.place.block} " in line)
        assert " meta mark set meta mark | 0x4000 " in lookup


def body(lines: list[str], chain: str) -> list[str]:
    """The rules of a chain."""
    start = lines.index(f"\tchain {chain} {{")
    rules = (line.strip() for line in lines[start + 1 : lines.index("\t}", start)])
    return [rule for rule in rules if not rule.startswith("comment ")]


def test_empty_node_ports() -> None:
    """On the kind node no service has a node port."""
    ruleset = loaded("kind")[0].ruleset
    (nat,) = (t for t in ruleset.tables if t.name is TableName.NAT)
    (chain,) = (c for c in nat.chains if c.name == "KUBE-NODEPORTS")
    assert chain.rules == ()
    found = list(proven("kind", "tc", 0, "the chain jumped to is empty"))
    asked = [(lines, f) for lines, f in found if "address_type" in f.place.text]
    assert {f.operator for _, f in asked} == {"side", "constant", "lost-test", "inverted-test"}
    for lines, fault in asked:
        assert "_nat_KUBE_NODEPORTS(" in lines[fault.place.line + 1]


def rules_of(rules: str, table: TableName, chain: str) -> tuple[Rule, ...]:
    """The rules of the only chain whose name begins so."""
    found = next(t for t in loaded(rules)[0].ruleset.tables if t.name is table)
    (one,) = (c for c in found.chains if c.name.startswith(chain))
    return one.rules


def target(rule: Rule) -> str:
    (action,) = rule.actions
    assert isinstance(action, Jump | Goto)
    return action.chain


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_the_local_endpoint_is_where_a_lost_draw_goes(rules: str) -> None:
    """Only KUBE-EXT calls the chain, and goes on to one whose only endpoint is among those drawn."""
    service = "KUBE-SVC-J2MTS77FG2XFXVLN"
    nat = next(t for t in loaded(rules)[0].ruleset.tables if t.name is TableName.NAT)
    callers = {
        c.name
        for c in nat.chains
        for r in c.rules
        for a in r.actions
        if isinstance(a, Jump | Goto) and a.chain == service
    }
    assert callers == {"KUBE-EXT-J2MTS77FG2XFXVLN"}
    last = rules_of(rules, TableName.NAT, "KUBE-EXT-J2MTS")[-1]
    assert (last.tests, target(last)) == ((), "KUBE-SVL-J2MTS77FG2XFXVLN")
    local = rules_of(rules, TableName.NAT, "KUBE-SVL-J2MTS")
    (endpoint,) = {target(r) for r in local[1:]}
    assert endpoint.startswith(("KUBE-SEP-5VVH", "KUBE-SEP-UPZB"))
    assert local[-1].tests == ()
    assert endpoint in {target(r) for r in rules_of(rules, TableName.NAT, service)}
    for kind in ("nft", "tc"):
        ((lines, fault),) = proven(rules, kind, 2, "only KUBE-EXT calls the chain,")
        assert endpoint.replace("-", "-" if kind == "nft" else "_") in lines[fault.place.line]


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_what_the_filter_rules_ask_for_is_elsewhere(rules: str) -> None:
    """What is refused on the way in is not the node's, and what is refused on the way through is."""
    node = loaded(rules)[0].node
    own = {a.value for i in node.interfaces for a in i.addresses}
    for rule in rules_of(rules, TableName.FILTER, "KUBE-PROXY-FIREWALL"):
        (asked,) = (t for t in rule.tests if isinstance(t, FieldTest) and t.field is Field.DADDR)
        assert not any(isinstance(v, Interval) and any(a in v for a in own) for v in asked.values)
    for rule in rules_of(rules, TableName.FILTER, "KUBE-EXTERNAL-SERVICES"):
        assert any(isinstance(t, FieldTest) and t.field is Field.FIB_DADDR_TYPE for t in rule.tests)
    assert not any("route_localnet" in name for name in node.sysctls)


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_nothing_follows(rules: str) -> None:
    """Behind KUBE-FORWARD only new connections are asked about, and POSTROUTING has one rule."""
    forward = rules_of(rules, TableName.FILTER, "FORWARD")
    (at,) = (n for n, rule in enumerate(forward) if target(rule) == "KUBE-FORWARD")
    new = Interval.point(ConnectionState.NEW)
    for rule in forward[at + 1 :]:
        assert [t.values for t in rule.tests if isinstance(t, FieldTest)] == [(new,)]
    assert len(rules_of(rules, TableName.NAT, "POSTROUTING")) == 1
