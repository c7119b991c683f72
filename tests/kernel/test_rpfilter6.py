"""``-m rpfilter`` over IPv6: packets from everywhere, on every device, and routes of two devices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.flow import Flow
from backends.nftables.backend import NftablesBackend
from backends.simulator import simulate
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.rulefile import InputOptions
from harness.diff.compare import compare
from nfparity.inputs.batches import load_node
from nfparity.inputs.rules import load_rules
from tests.kernel.helpers.availability import require
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.passes import lower

FOLDER = Path(__file__).parent.parent / "corpus" / "rulesets" / "rpfilter6"
RULES = load_rules(str(FOLDER / "rules.ip6tables-save"), InputOptions(family=Family.IP6))
IPTABLES = tuple(IptablesBackend(name) for name in ("iptables-legacy", "iptables-nft"))


def different(backend: Backend, node_file: Path) -> list[str]:
    """Return the flows on which a backend and the simulator differ."""
    require(backend)
    job = Job(rules=RULES, node=load_node(str(node_file), RULES))
    flows = read_flows((FOLDER / "flows.jsonl").read_bytes(), name="flows", node=job.node)
    with backend.open(job) as session:
        seen = list(session.replay(flows))
    return [f.id for f, got in zip(flows, seen, strict=True) if compare(f, simulate(job, f), got)]


@pytest.mark.parametrize("backend", [*IPTABLES, NftablesBackend()], ids=lambda backend: backend.name)
def test_the_way_back(backend: Backend) -> None:
    assert different(backend, FOLDER / "node.json") == []


def test_the_flows_pass_and_fail() -> None:
    job = Job(rules=RULES, node=load_node(str(FOLDER / "node.json"), RULES))
    flows = read_flows((FOLDER / "flows.jsonl").read_bytes(), name="flows", node=job.node)
    verdicts = [_verdict(job, flow) for flow in flows]
    assert min(verdicts.count(verdict) for verdict in set(verdicts)) >= 12
    assert len(set(verdicts)) == 4


def _verdict(job: Job, flow: Flow) -> str:
    (branch,) = simulate(job, flow).branches
    (outcome,) = branch.outcomes
    assert outcome is not None
    return outcome.verdict


@pytest.mark.parametrize("backend", [*IPTABLES, NftablesBackend()], ids=lambda backend: backend.name)
def test_routes_of_two_devices_to_one_prefix(backend: Backend, tmp_path: Path) -> None:
    """The note on the translation says that nftables takes the first of them."""
    data = json.loads((FOLDER / "node.json").read_text())
    data["interfaces"]["pod0"].append("fd00:2::7/64")
    node = tmp_path / "node.json"
    node.write_text(json.dumps(data))
    assert bool(different(backend, node)) is (backend.name == "nftables")


def test_the_tc_program_refuses_it() -> None:
    from translate.bpf import emit

    with pytest.raises(UnsupportedError) as caught:
        emit(lower(RULES, level=2))
    assert {refusal.feature for refusal in caught.value.refusals} == {"rpfilter6"}
