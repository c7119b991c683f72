"""The same input gives the same report, byte by byte, whatever the kernel draws."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nfparity.cli import main

ROOT = Path(__file__).resolve().parents[2]
REAL = ROOT / "tests/corpus/rulesets/kube-real"
FORMATS = (("text",), ("json",), ("sarif",), ("junit", "--no-times"))
MANY = int(os.environ.get("NFPARITY_RUNS", "0"))
"""The number of runs of each command in the slow tests; 100 take hours."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="kernel backends need root"),
]

NODE = {
    "interfaces": {"eth0": ["192.0.2.1/24"], "pods": ["10.0.1.1/24"]},
    "sysctls": {"net.ipv4.ip_forward": "1"},
}
CLIENTS = 12
TWO_ENDPOINTS = """\
*nat
:PREROUTING ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:SVC - [0:0]
-A PREROUTING -d 10.96.0.1/32 -p udp -m udp --dport 53 -j SVC
-A POSTROUTING -j MASQUERADE --random-fully
-A SVC -p udp -m statistic --mode random --probability 0.50000000000 -j DNAT --to-destination 10.0.1.2:53
-A SVC -p udp -j DNAT --to-destination 10.0.1.3:53
COMMIT
"""
ONE_ENDPOINT = TWO_ENDPOINTS.replace("0.50000000000", "1.00000000000")
NO_RULES = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
TABLE = """\
table ip given {
	chain services {
		type nat hook prerouting priority dstnat; policy accept;
		ip daddr 10.96.0.1 udp dport 53 jump svc
	}
	chain svc {
		SVC
	}
	chain sources {
		type nat hook postrouting priority srcnat; policy accept;
		masquerade fully-random
	}
}
"""
OTHER_ENDPOINT = TABLE.replace("SVC", "dnat to numgen random mod 2 map { 0 : 10.0.1.2, 1 : 10.0.1.9 }")
RIGHT_ENDPOINTS = OTHER_ENDPOINT.replace("10.0.1.9", "10.0.1.3")
HASHED = TABLE.replace("SVC", "dnat to jhash ip saddr mod 2 map { 0 : 10.0.1.2, 1 : 10.0.1.9 }")
LIMITED = """\
table ip given {
	chain forward {
		type filter hook forward priority 0; policy drop;
		limit rate 1/hour burst 1 packets accept
	}
}
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A node, and one datagram of each of some clients."""
    (tmp_path / "node.json").write_text(json.dumps(NODE))
    flows = [
        {"id": f"{n}", "in": "eth0", "src": f"192.0.2.{10 + n}", "dst": "10.96.0.1", "proto": "udp"}
        | {"sport": 40000, "dport": 53}
        for n in range(CLIENTS)
    ]
    (tmp_path / "flows.jsonl").write_text("".join(json.dumps(flow) + "\n" for flow in flows))
    return tmp_path


def diff(files: Path, rules: str, given: str, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    (files / "rules").write_text(rules)
    (files / "given.nft").write_text(given)
    inputs = ("--node", str(files / "node.json"), "--corpus", str(files / "flows.jsonl"))
    main(["diff", str(files / "rules"), *inputs, "--against", str(files / "given.nft"), *words])
    return capsys.readouterr().out


def differing(files: Path, rules: str, given: str, capsys: pytest.CaptureFixture[str]) -> Any:
    report = json.loads(diff(files, rules, given, capsys, "--format", "json"))
    return {(d["flow_id"], d["field"], json.dumps(d["observed"])) for d in report["differences"]}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form[0])
@pytest.mark.parametrize(
    ("rules", "given"),
    [(TWO_ENDPOINTS, OTHER_ENDPOINT), (ONE_ENDPOINT, RIGHT_ENDPOINTS), (TWO_ENDPOINTS, HASHED)],
    ids=["chance-on-both-sides", "chance-then-alone", "hash-without-a-seed"],
)
def test_a_report_does_not_depend_on_what_is_drawn(
    rules: str, given: str, form: tuple[str, ...], files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (diff(files, rules, given, capsys, "--format", *form) for _ in range(2))
    assert first == second
    assert "difference" in first


def test_every_client_meets_the_wrong_endpoint_and_nothing_else(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {(str(n), "dst", '"10.0.1.9"') for n in range(CLIENTS)}
    assert differing(files, TWO_ENDPOINTS, OTHER_ENDPOINT, capsys) == wrong


def test_chance_that_only_the_given_rules_know_is_waited_for(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = differing(files, ONE_ENDPOINT, RIGHT_ENDPOINTS, capsys)
    assert found == {(str(n), "dst", '"10.0.1.3"') for n in range(CLIENTS)}
    assert differing(files, TWO_ENDPOINTS, RIGHT_ENDPOINTS, capsys) == set()


def test_an_endpoint_that_is_never_chosen_is_missed(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = differing(files, TWO_ENDPOINTS, RIGHT_ENDPOINTS.replace("10.0.1.3", "10.0.1.2"), capsys)
    assert found == {(str(n), "path", '"never seen"') for n in range(CLIENTS)}


def test_rules_that_count_begin_anew_with_each_flow(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "flows.jsonl").write_text((files / "flows.jsonl").read_text().replace("10.96.0.1", "10.0.1.2"))
    assert differing(files, NO_RULES, LIMITED, capsys) == set()


def test_rules_that_the_kernel_counts_are_covered_each_time(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "rules").write_text(TWO_ENDPOINTS)
    (files / "flows.jsonl").write_text((files / "flows.jsonl").read_text().partition("\n")[0] + "\n")
    inputs = ("--node", str(files / "node.json"), "--corpus", str(files / "flows.jsonl"))
    words = ["corpus", "coverage", str(files / "rules"), *inputs, "--counted-by", "iptables-legacy"]
    reports = []
    for _ in range(4):
        assert main([*words, "--format", "json"]) == 0
        reports.append(capsys.readouterr().out)
    assert len(set(reports)) == 1
    (report,) = json.loads(reports[0])
    assert [rule["matched"] for rule in report["by_rule"]] == [1, 1, 1, 1]


def assess_words(*more: str) -> list[str]:
    node = ("--node", str(REAL / "dataplane.json"))
    given = ("--against", str(REAL / "realistic.nft"), "--kubernetes", "1.30")
    return ["assess", str(REAL / "rules.iptables-save"), *node, *given, *more]


HAIRPINS = {
    *("data/redis:redis", "edge/local-only:quic", "edge/sticky-local:mqtt", "kube-system/kube-dns:dns"),
    *("kube-system/kube-dns:dns-tcp", "kube-system/kube-dns:metrics", "legacy/erp:erp"),
    *("telco/diameter:sctp", "telco/diameter:tcp", "telco/diameter:udp", "web/api:grpc"),
    *("web/frontend:http", "web/frontend:https", "web/shop:https"),
}
"""The services of kube-real with endpoints elsewhere that may be sent to themselves."""


@pytest.mark.slow
def test_an_assessment_is_the_same_each_time_and_misses_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    reports = []
    node = ("--node", str(REAL / "dataplane.json"))
    words = ["assess", str(REAL / "rules.iptables-save"), *node, "--known-only", "--format", "json"]
    for _ in range(2):
        assert main(words) == 1
        reports.append(capsys.readouterr().out)
    assert reports[0] == reports[1]
    (family,) = json.loads(reports[0])["families"]
    assert {one["affects"] for one in family["findings"] if one["id"] == "K20"} == HAIRPINS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus made from kube-real's rules."""
    path = tmp_path_factory.mktemp("corpus") / "flows.jsonl"
    words = ("corpus", "generate", "rules.iptables-save", "--node", "dataplane.json", "-o", str(path))
    subprocess.run([sys.executable, "-m", "nfparity.cli", *words], cwd=REAL, check=True, timeout=300)
    return path


@pytest.mark.slow
@pytest.mark.skipif(not MANY, reason="NFPARITY_RUNS=100 says how often each command is run")
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form[0])
@pytest.mark.parametrize("command", ["assess", "assess-known", "diff", "against"])
def test_many_runs_have_one_report(command: str, form: tuple[str, ...], corpus: Path) -> None:
    """On kube-real, in processes of their own, which differ in the order of sets, too."""
    flows = ("rules.iptables-save", "--node", "dataplane.json", "--corpus", str(corpus))
    words = {
        "assess": assess_words(),
        "assess-known": assess_words("--known-only"),
        "diff": ["diff", *flows],
        "against": ["diff", *flows, "--against", "realistic.nft"],
    }[command]
    found: set[tuple[int, bytes]] = set()
    for _ in range(MANY):
        done = subprocess.run(
            [sys.executable, "-m", "nfparity.cli", *words, "--format", *form],
            cwd=REAL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=600,
            check=False,
        )
        assert b"Traceback" not in done.stderr
        found.add((done.returncode, done.stdout))
    assert len(found) == 1
