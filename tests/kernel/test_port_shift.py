"""Shifted port maps (``--to-destination A:1000-2000/3000``): where each port goes, also to taken ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Backend, Job
from backends.model.node import Node
from backends.simulator import simulate
from backends.tc_ebpf import TcEbpfBackend
from harness.corpus.formats.jsonlines import read_flows
from harness.diff.compare import compare
from nfparity.inputs.rules import load_rules
from tests.kernel.helpers.availability import require
from translate.errors import UnsupportedError
from translate.nft import emit
from translate.passes import LEVELS, lower

FOLDER = Path(__file__).parent.parent / "corpus" / "rulesets" / "port-shift"
BACKENDS = (IptablesBackend("iptables-legacy"), IptablesBackend("iptables-nft"), TcEbpfBackend())


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_ports_go_where_the_simulator_sends_them(backend: Backend, kind_node: Node) -> None:
    require(backend)
    job = Job(rules=load_rules(str(FOLDER / "rules.iptables-save")), node=kind_node)
    flows = read_flows((FOLDER / "flows.jsonl").read_bytes(), name="flows", node=kind_node)
    with backend.open(job) as session:
        seen = list(session.replay(flows))
    expected = [simulate(job, flow) for flow in flows]
    assert [
        m for f, want, got in zip(flows, expected, seen, strict=True) for m in compare(f, want, got)
    ] == []
    assert not any(want.notes for want in expected)


@pytest.mark.parametrize("level", LEVELS)
def test_nftables_refuses_them(level: int) -> None:
    with pytest.raises(UnsupportedError) as caught:
        emit(lower(load_rules(str(FOLDER / "rules.iptables-save")), level=level))
    assert {refusal.feature for refusal in caught.value.refusals} == {"nat-port-shift"}
    assert len(caught.value.refusals) == 8
