"""Cases that wait for real: what a timeout forgets, every backend forgets, and nothing earlier."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import simulate
from harness.diff.backends import backend
from harness.diff.batch import Batch
from harness.diff.compare import compare
from nfparity.inputs.batches import load_batches

FOLDER = Path(__file__).parent.parent / "corpus" / "cases-timed"
BATCHES = load_batches(rules=None, corpus=str(FOLDER), node=None)
BACKENDS = ("iptables-legacy", "iptables-nft", "nftables", "tc-ebpf")
ATTEMPTS = 3
"""A machine that stalls is no difference: a flow may try again."""


def differing(name: str, batch: Batch) -> list[str]:
    """Return the flows that go another way than the simulator says, each time that they are tried."""
    job = Job(rules=batch.ruleset, node=batch.node, level=1)
    flows: tuple[Flow, ...] = tuple(batch.flows)
    with backend(name).open(job) as session:
        for _ in range(ATTEMPTS):
            results = zip(flows, session.replay(flows), strict=True)
            flows = tuple(flow for flow, seen in results if compare(flow, simulate(job, flow), seen))
            if not flows:
                break
    return [flow.id for flow in flows]


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=[Path(b.rules_path).parent.name for b in BATCHES])
def test_before_and_after_a_timeout(batch: Batch) -> None:
    """Backends wait at the same time: each has a process and a namespace of its own."""
    found = {name: backend(name).probe() for name in BACKENDS}
    ready = [name for name in BACKENDS if found[name].ok]
    with ThreadPoolExecutor(len(BACKENDS)) as pool:
        wrong = dict(zip(ready, pool.map(lambda name: differing(name, batch), ready), strict=True))
    assert {name: flows for name, flows in wrong.items() if flows} == {}
    lacking = [f"{name}: {one.reason}" for name, one in found.items() if not one.ok]
    if lacking:
        pytest.skip("; ".join(lacking))
