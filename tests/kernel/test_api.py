"""The Python interface and the example project on the backends of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.model.contract import Job, Session
from harness.diff.backends import backend
from nfparity.api import DifferenceError, Reply, UnsupportedError, compare, load, make_node, read_rules
from tests.kernel.helpers.availability import require

ROOT = Path(__file__).resolve().parents[2]
BACKENDS = ("iptables-legacy", "iptables-nft", "nftables", "tc-ebpf")
RULES = """\
*nat
:PREROUTING ACCEPT [0:0]
:WEB - [0:0]
-A PREROUTING -d 10.0.0.1/32 -j WEB
-A WEB -p udp -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.1.0.2:53
-A WEB -p udp -j DNAT --to-destination 10.1.0.3:53
COMMIT
"""
NODE = make_node({"eth0": "10.0.0.1/24", "cni0": "10.1.0.1/24"})
PACKET = "udp 10.0.0.9:4000 > 10.0.0.1:53 in eth0"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "tc-ebpf" else []) for name in BACKENDS]
)
def test_a_backend_shows_every_random_outcome(name: str) -> None:
    require(backend(name))
    with load(RULES, NODE, backend=name) as rules:
        request, answer = rules.exchange(PACKET, Reply())
    assert request.destinations == {"10.1.0.2:53", "10.1.0.3:53"}
    assert (answer.src, answer.dst, answer.out) == ("10.0.0.1:53", "10.0.0.9:4000", "eth0")


def test_backends_that_agree() -> None:
    require(backend("iptables-nft"), backend("nftables"))
    compare(RULES, NODE, [PACKET, "udp 10.1.0.7:53 > 10.0.0.9:4000"], backends=["iptables-nft", "nftables"])


def test_a_backend_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rules of the kernel have another address than those of the simulator."""
    require(backend("iptables-legacy"))
    rules = "*nat\n:PREROUTING ACCEPT\n-A PREROUTING -p udp -j DNAT --to-destination 10.1.0.2:53\nCOMMIT\n"
    changed = read_rules(rules.replace("10.1.0.2", "10.1.0.4"))
    opened = IptablesBackend.open

    def open_changed(self: IptablesBackend, job: Job) -> AbstractContextManager[Session]:
        return opened(self, replace(job, rules=changed))

    monkeypatch.setattr(IptablesBackend, "open", open_changed)
    with pytest.raises(DifferenceError) as caught:
        compare(rules, NODE, [PACKET], backends=["iptables-legacy"])
    report = str(caught.value)
    assert "expected    10.1.0.2\n" in report
    assert "observed    10.1.0.4\n" in report
    assert "rules:3: -A PREROUTING -p udp -j DNAT --to-destination 10.1.0.2:53" in report


def test_rules_that_a_backend_cannot_express() -> None:
    require(backend("tc-ebpf"))
    rules = "*mangle\n-A PREROUTING -p tcp -m string --algo bm --string x -j MARK --set-mark 1\nCOMMIT\n"
    with pytest.raises(UnsupportedError, match="string"), load(rules, NODE, backend="tc-ebpf"):
        pass


def test_the_example_project() -> None:
    require(*(backend(name) for name in BACKENDS))
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".")
    done = subprocess.run(
        (*command, "--nfparity-backends", ",".join(("simulator", *BACKENDS))),
        cwd=ROOT / "examples" / "hostports",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "25 passed" in done.stdout
