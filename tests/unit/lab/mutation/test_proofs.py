"""Proofs hold where they are used: what each argues with is looked up in the rules and translations."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator

import pytest

import translate.bpf
import translate.nft
from backends.model.contract import Job
from backends.model.outcome import Verdict
from backends.simulator import SimulatorBackend
from tests.lab.mutation.bpf_faults import bpf_faults
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.nft_faults import nft_faults
from tests.lab.mutation.proofs import PROOFS, proof_of
from tests.lab.mutation.rulesets import batches_of
from translate.ir import (
    Accept,
    ConnectionState,
    Family,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Rule,
    TableName,
    format_address,
    parse_address,
)
from translate.passes import lower

loaded = functools.cache(batches_of)


_MARKED = "at this level only KUBE-EXT calls the service's chain, and it has marked"


def planted(rules: str, kind: str, level: int) -> Iterator[tuple[list[str], Fault]]:
    """The faults of a translation, each with the lines of the text."""
    program = lower(loaded(rules)[0].ruleset, level=level)
    text = translate.nft.emit(program).text if kind == "nft" else translate.bpf.emit(program).render()
    lines = text.split("\n")
    for fault in nft_faults(text) if kind == "nft" else bpf_faults(text):
        yield lines, fault


def proven(rules: str, kind: str, level: int, reason: str) -> Iterator[tuple[list[str], Fault]]:
    """The faults of a translation whose proof's reason begins so, each with the lines of the text."""
    for lines, fault in planted(rules, kind, level):
        proof = proof_of(rules, f"{kind}-O{level}", fault)
        if proof is not None and proof.reason.startswith(reason):
            yield lines, fault


def test_every_proof_is_of_a_fault() -> None:
    """A proof without one has lost it to another name in the translation."""
    open_proofs = {proof for proofs in PROOFS.values() for proof in proofs}
    for rules in ("kind", "cluster", "cluster6", "kube-ipvs", "kube-ipvs6"):
        for kind, level in itertools.product(("nft", "tc"), (0, 1, 2)):
            faults = tuple(fault for _, fault in planted(rules, kind, level))
            subject = f"{kind}-O{level}"
            mine = open_proofs.intersection(PROOFS[rules])
            open_proofs -= {proof for proof in mine if any(proof.covers(subject, fault) for fault in faults)}
    assert open_proofs == set()


@pytest.mark.parametrize("rules", ["cluster", pytest.param("cluster6", marks=pytest.mark.slow)])
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
    found = list(proven(rules, "nft", 2, _MARKED))
    blocks = {fault.place.block for _, fault in found}
    assert len(blocks) == 4
    lines = found[0][0]
    (service,) = (block for block in blocks if "-SVC-" in block)
    (at,) = (n for n, line in enumerate(lines) if re.search(rf"(jump|goto) {service}\b", line))
    assert lines[at].startswith(f"\t\tjump {service} ")
    assert lines[at - 1].startswith("\t\tmeta mark set meta mark | 0x4000 ")
    (draw,) = (line for line in lines if f"@{service}_draw " in line)
    assert lines.index(draw) > lines.index(f"\tchain {service} {{")
    start = lines.index(f"\tmap {service}_draw {{")
    elements = range(start, lines.index("\t}", start))
    for endpoint in blocks - {service}:
        (at,) = (n for n, line in enumerate(lines) if re.search(rf"(jump|goto) {endpoint}\b", line))
        assert at in elements
    assert list(proven(rules, "nft", 1, _MARKED)) == []


@pytest.mark.parametrize("rules", ["cluster", "cluster6"])
def test_marked_by_the_load_balancers_chain(rules: str) -> None:
    """From the only address's element to the endpoints, each step is the only one; the second marks."""
    found = list(proven(rules, "nft", 2, "packets to the load balancer's address"))
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
    found = list(proven("kind", "tc", 0, "the target chain is empty"))
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
    """KUBE-PROXY-FIREWALL tests no address of the node, and KUBE-EXTERNAL-SERVICES only local ones."""
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


def members_of(rules: str, name: str) -> set[tuple[int, ...]]:
    """The keys of the set that is called so, in either family."""
    spelled = (name, name.replace("KUBE-", "KUBE-6-")[:31])
    (one,) = (s for s in loaded(rules)[0].ruleset.sets if s.name in spelled)
    return {tuple(part.low for part in element.key) for element in one.elements}


@pytest.mark.parametrize("rules", ["kube-ipvs", "kube-ipvs6"])
def test_what_ipvs_rules_refuse_is_for_the_node(rules: str) -> None:
    """Neither is forwarded, and what the node itself sends there passes INPUT."""
    own = {a.value for i in loaded(rules)[0].node.interfaces for a in i.addresses}
    assert {key[0] for key in members_of(rules, "KUBE-LOAD-BALANCER-FW")} <= own
    assert {key[0] for key in members_of(rules, "KUBE-IPVS-IPS")} <= own
    assert [target(rule) for rule in rules_of(rules, TableName.FILTER, "FORWARD")] == [
        "KUBE-PROXY-FIREWALL",
        "KUBE-FORWARD",
    ]
    assert "KUBE-IPVS-FILTER" in {target(rule) for rule in rules_of(rules, TableName.FILTER, "INPUT")}
    (lost,) = (f for _, f in proven(rules, "nft", 2, "KUBE-PROXY-FIREWALL tests") if f.after is None)
    assert "jump filter_KUBE-PROXY-FIREWALL" in lost.place.text
    assert len(list(proven(rules, "nft", 0, "KUBE-IPVS-FILTER rejects"))) == 1


@pytest.mark.parametrize("rules", ["kube-ipvs", "kube-ipvs6"])
def test_the_sources_that_ipvs_rules_let_in(rules: str) -> None:
    """Each is the destination itself, and of the ports no two are the same."""
    found = members_of(rules, "KUBE-LOAD-BALANCER-SOURCE-IP")
    assert all(key[0] == key[-1] for key in found)
    assert len({key[1:-1] for key in found}) == len(found)
    (side,) = proven(rules, "nft", 2, "each element has the same address")
    assert side[1].operator == "side"


def test_a_packet_to_itself_that_is_masqueraded_is_refused() -> None:
    """The element is of a service whose packets are marked, and a mark is masqueraded before INPUT."""
    batch = loaded("kube-ipvs")[0]
    faults = [fault for _, fault in proven("kube-ipvs", "nft", 2, "only the node itself sends from")]
    (asked,) = {fault.place.text.strip().split(" comment")[0] for fault in faults}
    (flow,) = (f for f in batch.flows if f.id == "line30-input-element-2")
    packet = flow.first.packet
    assert flow.first.entry is None
    assert asked.startswith(f"{format_address(Family.IP, packet.src)} . tcp . {packet.dport} . ")
    assert packet.src == packet.dst
    with SimulatorBackend().open(Job(rules=batch.ruleset, node=batch.node)) as session:
        (result,) = session.replay([flow])
    assert {branch.outcomes[0].verdict for branch in result.branches} == {Verdict.DROP}


@pytest.mark.parametrize("rules", ["kube-ipvs", "kube-ipvs6"])
def test_an_sctp_node_port_that_a_rule_before_ends(rules: str) -> None:
    (fault,) = (fault for _, fault in proven(rules, "nft", 2, "an earlier rule decides about"))
    local = members_of(rules, "KUBE-NODE-PORT-LOCAL-SCTP-HASH")
    own = {a.value for i in loaded(rules)[0].node.interfaces for a in i.addresses}
    assert {key[2] for key in local} == {30998}
    assert {key[0] for key in local} <= own
    family = loaded(rules)[0].ruleset.family
    assert parse_address(family, (fault.after or "").split()[0]) not in own


def test_the_states_that_the_end_of_forward_accepts() -> None:
    """The lookup by state is KUBE-FORWARD's, behind it is an accept, and behind that nothing."""
    found = list(proven("kind", "tc", 2, "no rule follows in FORWARD"))
    entries = [(lines, fault) for lines, fault in found if fault.place.block.startswith("lookup_")]
    assert len(entries) == 4
    for lines, fault in entries:
        (at,) = (n for n, line in enumerate(lines) if f"{fault.place.block}.lookup(" in line)
        start = max(n for n in range(at) if lines[n].startswith("INLINE int "))
        assert "_filter_KUBE_FORWARD(" in lines[start]
    last = rules_of("kind", TableName.FILTER, "KUBE-FORWARD")[1:]
    assert all(rule.actions == (Accept(),) for rule in last)
    called = [target(rule) for rule in rules_of("kind", TableName.FILTER, "FORWARD")]
    behind = called[called.index("KUBE-FORWARD") + 1 :]
    assert all(rules_of("kind", TableName.FILTER, chain) == () for chain in behind)
