"""``nfparity diff`` on the running kernel: parity where there is, differences where there are."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.diff.backends import BACKENDS, backend
from tests.kernel.helpers.availability import require

ROOT = Path(__file__).resolve().parents[2]
KIND = ROOT / "tests/corpus/rulesets/kind-node"
KERNELS = tuple(name for name in BACKENDS if name != "simulator")
FLOWS = (
    '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 40000,'
    ' "dport": 53, "then": [{"reply": {}}, {"again": {}}]}\n'
    '{"id": "hairpin", "in": "dns3", "src": "10.244.0.3", "dst": "10.96.0.10", "proto": "tcp",'
    ' "sport": 40001, "dport": 9153, "then": [{"reply": {}}, {"again": {}}, {"reply": {}}]}\n'
    '{"id": "from-node", "in": null, "src": "172.18.0.2", "dst": "10.96.0.1", "proto": "tcp",'
    ' "sport": 40002, "dport": 443, "then": [{"reply": {}}]}\n'
    '{"id": "invalid", "in": "pod5", "src": "10.244.0.5", "dst": "203.0.113.7", "proto": "tcp",'
    ' "sport": 40003, "dport": 443, "flags": "SA"}\n'
)

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "nfparity.cli", *words]


def diff(*words: str, rules: Path = KIND / "rules.iptables-save") -> subprocess.CompletedProcess[str]:
    given = ("diff", str(rules), "--node", str(KIND / "worker.json"), *words)
    done = subprocess.run(
        command(*given), input=FLOWS, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "level"),
    [
        *((name, 0) for name in KERNELS),
        ("nftables", 1),
        pytest.param("tc-ebpf", 1, marks=pytest.mark.slow),
    ],
)
def test_parity(name: str, level: int) -> None:
    require(backend(name))
    done = diff("--corpus", "-", "--backends", name, "-O", str(level), "--repeat", "40", "--format", "json")
    assert done.returncode == 0, done.stdout
    report = json.loads(done.stdout)
    assert report["differences"] == []
    assert (report["flows"], report["chancy"], report["repeated"]) == (4, 2, 39 * 2)
    assert report["share_tests"]


def needs(name: str) -> None:
    require(backend(name))


def test_a_difference_on_a_kernel_is_reported_and_its_command_replays_it(tmp_path: Path) -> None:
    """A node that does not forward: its kernel drops what the simulator, told otherwise, forwards."""
    needs("iptables-legacy")
    from dataclasses import replace

    from backends.model.contract import Job
    from backends.model.flow import Flow
    from harness.diff.deciding_rules import deciding_rules
    from harness.diff.parity import Plan, run_parity
    from nfparity.inputs.batches import load_batches

    flows = tmp_path / "flows.jsonl"
    flows.write_text(FLOWS)
    (batch,) = load_batches(
        rules=str(KIND / "rules.iptables-save"), corpus=str(flows), node=str(KIND / "worker.json")
    )

    class Closed:
        name = "iptables-legacy"

        def probe(self) -> object:
            return backend(self.name).probe()

        def open(self, job: Job) -> object:
            sysctls = {**job.node.sysctls, "net.ipv4.ip_forward": "0"}
            return backend(self.name).open(replace(job, node=replace(job.node, sysctls=sysctls)))

    report = run_parity(
        Plan(batches=(batch,)),
        [Closed()],  # type: ignore[list-item]  # structural enough
        reference=backend("simulator"),
        rules=deciding_rules,
        progress=lambda name, done, total: None,
    )
    verdicts = {d.flow_id: (d.field, d.expected, d.observed) for d in report.differences if d.step == 0}
    assert verdicts["dns"] == ("verdict", "forward", "drop")
    assert "from-node" not in verdicts
    (found,) = [d for d in report.differences if d.flow_id == "dns" and d.step == 0]
    assert any(re.search(r":(85|93): .*DNAT", rule) for rule in found.rules)
    assert isinstance(batch.flows[0], Flow)


def test_junit_of_a_run() -> None:
    needs("iptables-legacy")
    done = diff("--corpus", "-", "--backends", "iptables-legacy", "--format", "junit", "--only", "dns")
    assert done.returncode == 0
    assert 'tests="1" failures="0"' in done.stdout


def test_random_flows() -> None:
    needs("iptables-legacy")
    done = diff("--random", "100", "--seed", "3", "--backends", "iptables-legacy")
    assert done.returncode == 0, done.stdout
    assert "parity: 100 flows" in done.stdout


def test_counters_of_the_kernel_cover_the_rules_that_the_simulator_says() -> None:
    needs("iptables-legacy")
    reports = []
    for source in ("simulator", "iptables-legacy"):
        done = subprocess.run(
            command(
                "corpus",
                "coverage",
                str(KIND / "rules.iptables-save"),
                *(
                    "--node",
                    str(KIND / "worker.json"),
                    "--corpus",
                    "-",
                    "--counted-by",
                    source,
                    "--format",
                    "json",
                ),
            ),
            input=FLOWS,
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=120,
            check=False,
        )
        reports.append({r["line"]: r["matched"] for r in json.loads(done.stdout)[0]["by_rule"]})
    simulated, counted = reports
    certain = (36, 66, 68, 70, 98, 100, 101)
    assert all(simulated[line] and counted[line] for line in certain)
    assert not [line for line, n in counted.items() if n and not simulated[line]]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_leaves_no_process_behind(number: signal.Signals) -> None:
    needs("iptables-legacy")
    words = ("diff", str(KIND / "rules.iptables-save"), "--node", str(KIND / "worker.json"))
    with subprocess.Popen(
        command(*words, "--random", "20000", "--backends", "iptables-legacy,iptables-nft"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 60
        children: list[int] = []
        while not children and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
            children = _descendants(process.pid)
        assert children, "no session was opened in time"
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == (130 if number is signal.SIGINT else 143), err
        assert b"Traceback" not in err
        deadline = time.monotonic() + 60
        while any(Path(f"/proc/{c}").exists() for c in children) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not [c for c in children if Path(f"/proc/{c}").exists()]


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in tasks.read_text().split():
            found += [int(child), *_descendants(int(child))]
    return found
