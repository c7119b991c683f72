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
from translate.ir import TableName
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
