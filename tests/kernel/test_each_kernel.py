"""assess, diff and migrate have the same results on every kernel.

``make test`` runs this file on the running kernel, and ``tests/vm/test_commands.py`` on those of Debian 12
and 13. There ``NFPARITY_REPORTS`` is a folder with the reports of the running kernel, which must be the same.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backends.replay.worker import Worker
from backends.testbed.command import run
from nfparity.cli.main import main
from nfparity.snapshot import Variant
from tests.lab.forkedcommand import run_nfparity
from tests.lab.traffic.host import Host, Ip, Request, Start

ROOT = Path(__file__).resolve().parents[2]
KIND = "tests/corpus/rulesets/kind-node"
CASES = ("every-construct", "header-fields6", "kind-worker-clusterip-from-pod", "limit")

SERVICE = ("10.96.0.10", 80)
ENDPOINT = ("10.2.0.1", 8080)
RULES = """\
*raw
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A PREROUTING -d 10.2.0.9/32 -j DROP
COMMIT
*nat
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-MARK-MASQ - [0:0]
:KUBE-POSTROUTING - [0:0]
:KUBE-SERVICES - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A OUTPUT -j KUBE-SERVICES
-A POSTROUTING -j KUBE-POSTROUTING
-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000
-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN
-A KUBE-POSTROUTING -j MARK --set-xmark 0x4000/0x0
-A KUBE-POSTROUTING -j MASQUERADE --random-fully
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j KUBE-MARK-MASQ
-A KUBE-SERVICES -d 10.96.0.10/32 -p tcp -m tcp --dport 80 -j DNAT --to-destination 10.2.0.1:8080
COMMIT
*filter
:INPUT DROP [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
-A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A INPUT -p tcp -m tcp --dport 8080 -m conntrack --ctstate NEW -j ACCEPT
COMMIT
"""
DEVICES = """\
link set lo up
link add eth0 type veth peer name far0
address add 192.0.2.2/24 dev eth0
link set eth0 up
link set far0 up
address add 10.2.0.1/32 dev lo
route add default via 192.0.2.1
"""


@dataclass(frozen=True)
class Load(Request):
    """Loads the rules."""

    variant: Variant

    def run(self, host: Host) -> None:
        done = run((f"iptables-{self.variant}-restore",), RULES)
        assert not done.returncode, done.stderr


@dataclass(frozen=True)
class Loaded(Request):
    """Returns all rules: each table of iptables-save without counters, and the names of nftables tables."""

    variant: Variant

    def run(self, host: Host) -> tuple[list[str], list[str]]:
        saved = run((f"iptables-{self.variant}-save",)).stdout.splitlines()
        rules = "\n".join(line.partition(" [")[0] for line in saved if line[:1] != "#")
        tables = run(("nft", "list", "tables")).stdout.splitlines()
        return sorted(rules.split("COMMIT")), sorted(tables)


@dataclass(frozen=True)
class Nfparity(Request):
    """Runs ``nfparity migrate``."""

    words: tuple[str, ...]

    def run(self, host: Host) -> tuple[int, str, str]:
        ended = run_nfparity(("migrate", *self.words))
        return ended.status, ended.out, ended.err


@dataclass(frozen=True)
class Open(Request):
    """Opens a connection to the service, and keeps it as ``name``."""

    name: str

    def run(self, host: Host) -> None:
        if "server" not in host.kept:
            host.kept["server"] = socket.create_server(ENDPOINT)
        client = socket.create_connection(SERVICE, timeout=20)
        served, _ = host.kept["server"].accept()
        served.settimeout(20)
        host.kept[self.name], host.kept[f"{self.name} served"] = client, served


@dataclass(frozen=True)
class Talk(Request):
    """Sends a byte each way over a kept connection; returns both, and the address of the client's peer."""

    name: str

    def run(self, host: Host) -> tuple[bytes, bytes, tuple[str, int]]:
        client, served = host.kept[self.name], host.kept[f"{self.name} served"]
        client.sendall(b"?")
        there = served.recv(1)
        served.sendall(b"!")
        return there, client.recv(1), client.getpeername()


TALKED = (b"?", b"!", SERVICE)


def compare(name: str, text: str) -> None:
    """Compare a report with that of another kernel, or keep it for other kernels."""
    folder = os.environ.get("NFPARITY_REPORTS")
    if folder is None:
        return
    kept = Path(folder) / f"{name}.json"
    if kept.exists():
        assert text == kept.read_text()
    else:
        kept.write_text(text)


def test_an_assessment(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    node = ("--node", f"{KIND}/worker.json")
    words = ["assess", f"{KIND}/rules.iptables-save", *node, "--known-only", "--format", "json"]
    assert main(words) == 1
    text = capsys.readouterr().out
    (family,) = json.loads(text)["families"]
    assert family["findings"]
    compare("assess", text)


@pytest.mark.parametrize("case", CASES)
def test_a_comparison(case: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    backends = "iptables-legacy,iptables-nft,nftables"
    words = ["diff", "--corpus", f"tests/corpus/guest/{case}", "--backends", backends, "--format", "json"]
    assert main(words) == 0
    compare(f"diff-{case}", capsys.readouterr().out)


@pytest.fixture
def node(variant: Variant) -> Iterator[Worker]:
    requests = (Load, Loaded, Nfparity, Open, Talk)
    with Worker(Start("node", {"net/ipv4/ip_forward": "1"}, requests)) as worker:
        worker.ask(Ip(DEVICES))
        worker.ask(Load(variant))
        yield worker


def test_a_migration_there_and_back(node: Worker, variant: Variant) -> None:
    """A connection from before lives through both changes; new ones reach the service at every time."""

    def migrate(*words: str) -> str:
        state = () if words[0] == "plan" else ("--state", "/run/migrate")
        status, out, err = node.ask(Nfparity((*words, *state)))
        assert status == 0, f"{out}\n{err}"
        said: str = out
        return said

    before = node.ask(Loaded(variant))
    node.ask(Open("before"))
    assert node.ask(Talk("before")) == TALKED
    planned: dict[str, Any] = json.loads(migrate("plan", "-o", "/run/node.plan", "--format", "json"))
    assert planned["parity"]
    packets = planned["families"]["ip"]["packets"]
    assert packets["flows"] > 0
    assert set(packets["different"].values()) == {0}
    migrate("apply", "/run/node.plan")
    rules, tables = node.ask(Loaded(variant))
    assert not any("-A" in table for table in rules)
    assert "table ip nfparity" in tables
    assert node.ask(Talk("before")) == TALKED
    node.ask(Open("between"))
    migrate("verify", "--live", "--confirm")
    migrate("rollback")
    assert node.ask(Loaded(variant)) == before
    node.ask(Open("after"))
    for name in ("before", "between", "after"):
        assert node.ask(Talk(name)) == TALKED
