"""The bench at its smallest, so that it cannot rot; no figure is judged."""

from __future__ import annotations

import json
import random
from functools import partial

import pytest

from backends.model.contract import Job
from backends.model.flow import Flow, Reply, Send
from backends.model.packet import Packet
from backends.nftables.backend import NftablesBackend, NftablesLoader
from backends.replay.session import open_session
from backends.replay.worker import Worker, WorkerEndedError
from backends.simulator import SimulatorBackend
from backends.tc_ebpf import TcEbpfBackend
from harness.diff.compare import compare
from tests.kernel.helpers.availability import require
from tests.lab.bench.__main__ import main
from tests.lab.bench.kubelayout import kube_proxy_nftables
from tests.lab.bench.run import time_limit
from tests.lab.bench.soak import main as soak
from tests.lab.bench.subjects import OFFLOADING, PLAIN, subjects
from tests.lab.flowtables import missing_flowtables
from tests.lab.kuberules import Shape, draw_cluster, kube_proxy_rules
from translate.ir import Protocol
from translate.read import read_ruleset


@pytest.fixture(scope="module", autouse=True)
def _can_run():
    for backend in (NftablesBackend(), TcEbpfBackend()):
        require(backend)


@pytest.mark.slow
def test_the_smallest_run_measures_everything(tmp_path):
    options = [
        "--sizes",
        "10",
        "--load-rounds",
        "1",
        "--rounds",
        "1",
        "--packets",
        "200",
        "--sample-seconds",
        "0.05",
        "--verification",
        "10",
    ]
    assert main([*options, "--output", str(tmp_path)]) == 0
    cells = {c["subject"]: c for c in json.loads((tmp_path / "results.json").read_text())["cells"]}
    assert list(cells) == list(subjects())
    # What Debian's translator writes for these rules, nft refuses.
    assert "nftables does not take" in cells.pop("iptables-restore-translate")["missing"]["load"]
    offloading = cells.pop(OFFLOADING)
    missing = missing_flowtables()
    assert offloading["missing"].get("load") == missing
    assert len(offloading["first"]) == len(offloading["established"]) == (missing is None)
    for name, cell in cells.items():
        assert set(cell["missing"]) <= {"change"}, name
        assert len(cell["load"]) == len(cell["first"]) == len(cell["established"]) == 1, name
        assert len(cell["change"]) == (name != PLAIN), name
    text = (tmp_path / "RESULTS.md").read_text()
    assert all(f"| {name} |" in text for name in cells)
    assert "| simulator, flows |" in text
    assert "## Load of a wide cluster" in text
    assert "| tc load, warm | 10 |" in text


def test_a_load_that_takes_too_long_is_given_up(tmp_path):
    options = [
        "--sizes",
        "10",
        "20",
        "--rounds",
        "1",
        "--packets",
        "50",
        "--load-seconds",
        "0",
        "--no-speeds",
        "--verification",
        "0",
    ]
    assert main([*options, "--only", PLAIN, "kube-proxy's nftables", "--output", str(tmp_path)]) == 0
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- kube-proxy's nftables, load, at 10 services: over 0 s\n" in text
    assert "- kube-proxy's nftables, load, at 20 services: over 0 s at 10 services\n" in text


def test_a_node_that_is_ended_before_it_is_asked_says_so():
    with Worker(partial(eval, "lambda message: message()")) as worker, time_limit(worker, 0) as expired:
        assert expired.wait(60)
        with pytest.raises(WorkerEndedError):
            worker.ask(partial(eval, "__import__('time').sleep(600)"))


def test_unknown_subjects_are_an_error(tmp_path, capsys):
    assert main(["--only", "ipfw", "--output", str(tmp_path)]) == 2
    assert "no subject 'ipfw'" in capsys.readouterr().err


def test_the_layout_of_kube_proxy_does_as_its_iptables_rules_do():
    """Else it would be no peer: the same packets, the same fates."""
    cluster = draw_cluster(Shape(services=6, endpoints=2, udp=3, without_endpoints=1, base=False))
    ruleset = read_ruleset(kube_proxy_rules(cluster).encode(), name="rules")
    draw = random.Random(1)
    endpoints = [e.address for s in cluster.services for e in s.endpoints if e.local]
    senders = [
        (cluster.pods.low + 77, "cni0"),
        (cluster.node_ip + 7, "eth0"),
        *((e, "cni0") for e in endpoints),
    ]
    flows = []
    for n in range(120):
        service = cluster.services[n % len(cluster.services)]
        src, entry = draw.choice(senders)
        packet = Packet(
            family=cluster.family,
            src=src,
            dst=service.cluster_ip,
            proto=Protocol.UDP if service.protocol == "udp" else Protocol.TCP,
            sport=20_000 + n,
            dport=service.port,
        )
        flows.append(Flow(id=str(n), steps=(Send(packet=packet, entry=entry), Reply())))
    job = Job(rules=ruleset, node=cluster.node)
    with (
        SimulatorBackend().open(job) as reference,
        open_session(cluster.node, NftablesLoader(kube_proxy_nftables(cluster))) as kernel,
    ):
        wanted, got = list(reference.replay(flows)), list(kernel.replay(flows))
    different = {
        f.id: compare(f, w, g) for f, w, g in zip(flows, wanted, got, strict=True) if compare(f, w, g)
    }
    assert not different
    assert any(o.snat and o.dnat for g in got for b in g.branches for o in b.outcomes), "some are masqueraded"


@pytest.mark.slow
def test_the_smallest_soak(tmp_path):
    options = ["--minutes", "0.05", "--change", "0.3", "--replace", "1", "--pause", "0"]
    assert soak(["--subject", "iptables-legacy", *options, "--output", str(tmp_path)]) == 0
    text = (tmp_path / "SOAK.md").read_text()
    assert "| short connections that failed | 0 |" in text
    assert "| permanent connections that broke | 0 |" in text
    assert text.count("| client | ") == 4
