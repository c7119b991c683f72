"""Public dumps of Kubernetes nodes, on nodes inferred from their rules: parity on generated corpora."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from backends.contract import Job
from backends.flow import Flow
from backends.simulator import SimulatorBackend
from harness.backends import BACKENDS, REFERENCE, backend
from harness.batches import Batch
from harness.corpus.generate import generate_corpus
from harness.inference import infer_node
from harness.parity import Plan, run_parity
from translate.ir import Protocol
from translate.read import read_ruleset

DUMPS = Path(__file__).resolve().parents[3] / "shared/corpora/real-dumps"
KERNELS = tuple(name for name in BACKENDS if name != REFERENCE)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
    pytest.mark.skipif(not DUMPS.is_dir(), reason="needs the public dumps beside the project"),
]


@cache
def made(stem: str) -> tuple[Job, tuple[Flow, ...]]:
    path = DUMPS / f"{stem}.iptables-save"
    ruleset = read_ruleset(path.read_bytes(), name=path.name)
    job = Job(ruleset=ruleset, node=infer_node(ruleset))
    # A tc program cannot renew the CRC32c that covers SCTP's ports, and drops what needs it.
    flows = generate_corpus(job, seed=0).flows
    return job, tuple(f for f in flows if f.first.packet.proto != Protocol.SCTP)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("stem", ["kind-1.23-traefik-node", "calico-ipvs-node-excerpt"])
def test_parity(stem: str, name: str) -> None:
    availability = backend(name).probe()
    if not availability.ok:
        pytest.skip(f"{name}: {availability.reason}")
    job, flows = made(stem)
    assert len(flows) > 10
    batch = Batch(rules_path=stem, ruleset=job.ruleset, node=job.node, flows=flows, corpus="generated")
    report = run_parity(
        Plan(batches=(batch,), level=1),
        (backend(name),),
        reference=SimulatorBackend(),
        rules=lambda *_: (),
        progress=lambda *_: None,
    )
    assert report.parity, report.differences[:3]
