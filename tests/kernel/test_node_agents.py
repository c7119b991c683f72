"""What stands beside kube-proxy on a node: parity on corpora made from the rules, both levels."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from backends.contract import Job
from backends.node import node_from_json
from backends.simulator import SimulatorBackend
from harness.backends import BACKENDS, REFERENCE, backend
from harness.batches import Batch
from harness.corpus.generate import GeneratedCorpus, generate_corpus
from harness.parity import Plan, run_parity
from translate.ir import Family
from translate.read import read_ruleset

RULESETS = Path(__file__).resolve().parents[1] / "corpus/rulesets"
AGENTS = (
    "aws-vpc-cni/rules.iptables-save",
    "flannel/rules.iptables-save",
    "ip-masq-agent/rules.iptables-save",
    "ip-masq-agent/rules.ip6tables-save",
)
KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)
LEVELS = (0, 1)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


@cache
def made(path: str) -> tuple[Job, GeneratedCorpus]:
    rules = RULESETS / path
    node = rules.parent / ("node6.json" if "ip6" in rules.name else "node.json")
    ruleset = read_ruleset(rules.read_bytes(), name=path)
    job = Job(ruleset=ruleset, node=node_from_json(node.read_text(), name=node.name))
    return job, generate_corpus(job, seed=0)


@pytest.mark.parametrize("path", AGENTS)
def test_every_rule_is_hit(path: str) -> None:
    _, corpus = made(path)
    assert [one.rule.origin.text for one in corpus.coverage.missed] == []


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("path", AGENTS)
def test_parity(path: str, name: str) -> None:
    availability = backend(name).probe()
    if not availability.ok:
        pytest.skip(f"{name}: {availability.reason}")
    job, corpus = made(path)
    if name == "tc-ebpf" and job.ruleset.family is Family.IP6:
        pytest.skip("the tc program carries IPv4 only")
    batch = Batch(rules_path=path, ruleset=job.ruleset, node=job.node, flows=corpus.flows, corpus="generated")
    for level in LEVELS if name in ("nftables", "tc-ebpf") else LEVELS[:1]:
        report = run_parity(
            Plan(batches=(batch,), level=level),
            (backend(name),),
            reference=SimulatorBackend(),
            rules=lambda *_: (),
            progress=lambda *_: None,
        )
        assert report.parity, report.differences[:3]
