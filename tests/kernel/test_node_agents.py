"""What stands beside kube-proxy on a node: parity on its cases, at every level."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from backends.simulator import SimulatorBackend
from harness.backends import BACKENDS, REFERENCE, backend
from harness.batches import Batch
from harness.corpus.cases import Case, read_case
from harness.parity import Plan, run_parity
from tests.kernel.reports import told

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
CASES = (
    "cases/aws-vpc-cni",
    "cases/calico",
    "cases/flannel",
    "cases/ip-masq-agent",
    "cases6/ip-masq-agent6",
)
KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)
LEVELS = {"nftables": (0, 1, 2), "tc-ebpf": (0, 1)}

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


@cache
def case(path: str) -> Case:
    return read_case(CORPUS / path)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("path", CASES)
def test_parity(path: str, name: str) -> None:
    availability = backend(name).probe()
    if not availability.ok:
        pytest.skip(f"{name}: {availability.reason}")
    of = case(path)
    flows = of.flows
    batch = Batch(rules_path=path, ruleset=of.ruleset, node=of.node, flows=flows, corpus=path)
    for level in LEVELS.get(name, (0,)):
        report = run_parity(
            Plan(batches=(batch,), level=level),
            (backend(name),),
            reference=SimulatorBackend(),
            rules=lambda *_: (),
            progress=lambda *_: None,
        )
        assert report.parity, told(report)
        assert report.flows >= len(flows)
