"""Findings of ``nfparity migrate plan`` in live rules before anything is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from backends.iptables.backend import IptablesBackend
from backends.replay.worker import Worker
from backends.testbed.command import find_tool, run
from tests.kernel.helpers.availability import require
from tests.lab.forkedcommand import run_nfparity
from tests.lab.traffic.host import Host, Ip, Request, Start
from tests.unit.nfparity.report.pages.helpers.markup import checked_page

ROOT = Path(__file__).resolve().parents[2]
DEVICES = """\
link set lo up
link add eth0 type veth peer name far0
link add pod0 type veth peer name far1
address add 192.0.2.2/24 dev eth0
address add 10.0.0.1/24 dev pod0
link set eth0 up
link set pod0 up
route add default via 192.0.2.1
"""
MANGLE = "*mangle\n:PREROUTING ACCEPT [0:0]\n{rules}COMMIT\n"
COUNTS_UP = (
    "-A PREROUTING -m mark --mark 0x1 -j MARK --set-xmark 0x2/0xffffffff\n"
    "-A PREROUTING -m mark --mark 0x0 -j MARK --set-xmark 0x1/0xffffffff\n"
)
DROPS = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p udp -m mark --mark 0x2 -j DROP\nCOMMIT\n"


@dataclass(frozen=True)
class Planned(Request):
    """Loads rules by variant, and runs the command; returns its status, what it said, and the plan's text."""

    rules: tuple[tuple[str, str], ...]
    words: tuple[str, ...] = ()

    def run(self, host: Host) -> tuple[int, str, str, str | None]:
        for program, text in self.rules:
            restore = ("ipset", "restore") if program == "ipset" else (f"{program}-restore",)
            done = run(restore, text)
            assert not done.returncode, done.stderr
        path = Path("/run/node.plan")
        ended = run_nfparity(("migrate", "plan", "-o", str(path), *self.words))
        return ended.status, ended.out, ended.err, path.read_text() if path.exists() else None


@pytest.fixture
def node() -> Iterator[Worker]:
    for name in ("iptables-legacy", "iptables-nft"):
        require(IptablesBackend(name))
    if find_tool("ipset") is None:
        pytest.skip("ipset is not installed")
    with Worker(Start("node", {"net/ipv4/ip_forward": "1"}, (Planned,))) as worker:
        worker.ask(Ip(DEVICES))
        yield worker


def test_rules_that_are_the_same_twice(node: Worker) -> None:
    rules = MANGLE.format(rules="-A PREROUTING -i pod0 -j MARK --set-xmark 0x2/0x2\n") + DROPS
    status, out, _, text = node.ask(Planned((("iptables-legacy", rules),), ("--format", "json")))
    assert status == 0
    found = json.loads(out)["families"]["ip"]
    (static,) = json.loads(out)["static"]
    assert "the translation does not follow later changes" in static
    assert found["variant"] == "legacy"
    assert list(found["removed"]) == ["mangle", "filter"]
    assert found["packets"]["flows"] > 0
    assert set(found["packets"]["different"].values()) == {0}
    assert text is not None
    assert json.loads(text)["families"][0]["digest"] == found["digest"]


def test_rules_that_together_are_not_the_same_twice(node: Worker) -> None:
    """No rule toggles anything; a packet that meets both tables is counted up twice, and dropped."""
    rules = MANGLE.format(rules=COUNTS_UP) + DROPS
    status, out, _, text = node.ask(Planned((("iptables-legacy", rules),), ("--format", "json")))
    assert status == 1
    different = json.loads(out)["families"]["ip"]["packets"]["different"]
    assert different["nftables"] == 0
    assert different["iptables-legacy+nftables"] > 0
    assert text is None


@pytest.mark.parametrize(
    ("rules", "status"),
    [(DROPS, 0), (MANGLE.format(rules=COUNTS_UP) + DROPS, 1)],
    ids=["parity", "differences"],
)
def test_a_plan_as_a_page(rules: str, status: int, node: Worker) -> None:
    ended, out, _, text = node.ask(Planned((("iptables-legacy", rules),), ("--format", "html")))
    assert ended == status
    root = checked_page(out)
    findings = root.all("details", "finding")
    assert bool(findings) == (text is None) == bool(status)
    for finding in findings:
        assert "iptables-legacy+nftables" in root.all("section", "group")[0].all("h2")[0].text
        assert "Through the rules" in finding.text
    assert "nfparity migrate plan -o /run/node.plan" in root.all("dl", "facts")[0].text


def test_a_rule_that_toggles_is_refused_with_its_line(node: Worker) -> None:
    rules = MANGLE.format(rules="-A PREROUTING -j MARK --set-xmark 0x1/0x0\n")
    status, _, err, text = node.ask(Planned((("iptables-legacy", rules),)))
    assert status == 2
    assert "toggles bits 0x1 of the mark" in err
    assert "-A PREROUTING -j MARK --set-xmark 0x1/0x0" in err
    assert text is None


def test_rules_that_ask_live_ipsets(node: Worker) -> None:
    sets = "create allowed hash:ip family inet\nadd allowed 10.0.0.7\nadd allowed 10.0.0.9\n"
    rules = "*filter\n:FORWARD DROP [0:0]\n-A FORWARD -m set --match-set allowed src -j ACCEPT\nCOMMIT\n"
    status, out, err, text = node.ask(
        Planned((("ipset", sets), ("iptables-legacy", rules)), ("--format", "json"))
    )
    assert status == 0, err
    assert json.loads(out)["families"]["ip"]["loaded"]["elements"] == 2
    assert text is not None
    assert "add allowed 10.0.0.7" in json.loads(text)["families"][0]["ipsets"]


def test_what_cannot_be_translated_is_refused_with_its_line(node: Worker) -> None:
    rules = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m string --algo bm --string x -j DROP\nCOMMIT\n"
    status, _, err, text = node.ask(Planned((("iptables-legacy", rules),)))
    assert status == 2
    assert "-m string" in err
    assert "--keep-table TABLE leaves" in err
    assert text is None


def test_a_table_that_stays_need_not_be_translated(node: Worker) -> None:
    mangle = MANGLE.format(rules="-A PREROUTING -i pod0 -j MARK --set-xmark 0x2/0x2\n")
    stays = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -m string --algo bm --string x -j DROP\nCOMMIT\n"
    words = ("--keep-table", "filter", "--format", "json")
    status, out, err, text = node.ask(Planned((("iptables-legacy", mangle + stays),), words))
    assert status == 0, err
    found = json.loads(out)["families"]["ip"]
    assert found["packets"]["tried without"] == ["filter"]
    assert list(found["removed"]) == ["mangle"]
    assert found["kept"] == {"filter": {"chains": 0, "rules": 1}}
    assert text is not None
    assert json.loads(text)["families"][0]["left"] == ["filter"]


def test_packets_meet_a_table_that_stays(node: Worker) -> None:
    """The mark is set by the one, and asked by the other."""
    rules = MANGLE.format(rules="-A PREROUTING -i pod0 -j MARK --set-xmark 0x2/0x2\n") + DROPS
    words = ("--keep-table", "filter", "--format", "json")
    status, out, err, _ = node.ask(Planned((("iptables-legacy", rules),), words))
    assert status == 0, err
    packets = json.loads(out)["families"]["ip"]["packets"]
    assert packets["different"] == {"iptables-legacy filter+nftables": 0, "iptables-legacy+nftables": 0}
    assert packets["flows"] > 0
    status, _, err, _ = node.ask(Planned((), ("--keep-table", "filter", "--keep-table", "mangle")))
    assert status == 2
    assert "no iptables rules but those in filter, mangle are loaded" in err


def test_both_stacks_hold_rules(node: Worker) -> None:
    mangle = MANGLE.format(rules="-A PREROUTING -j MARK --set-xmark 0x2/0x2\n")
    both = (("iptables-legacy", mangle), ("iptables-nft", DROPS))
    status, _, err, text = node.ask(Planned(both))
    assert status == 2
    assert "choose with --variant" in err
    assert text is None
    status, out, _, text = node.ask(Planned((), ("--variant", "nft", "--format", "json")))
    assert status == 0
    assert list(json.loads(out)["families"]["ip"]["removed"]) == ["filter"]


def test_there_is_nothing_to_replace(node: Worker) -> None:
    status, _, err, text = node.ask(Planned(()))
    assert status == 2
    assert "no iptables rules are loaded" in err
    assert text is None
