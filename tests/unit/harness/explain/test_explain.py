"""The question of why a chain marks packets that come from its own endpoint."""

from __future__ import annotations

import io
import json
from fractions import Fraction

import pytest

from backends.model.contract import Job
from harness.explain.explain import ExplainedBranch, explain
from harness.explain.packetspec import parse_packet
from harness.report.explanation import chance_text, print_explanation
from harness.report.pathjson import explanation_json
from translate.ir import Family, parse_address


def branch_to(job: Job, packet: str, pod: str) -> ExplainedBranch:
    found = explain(job, parse_packet(packet, job.node)).branches
    (one,) = [
        b for b in found if b.steps[0].outcome and b.steps[0].outcome.dst == parse_address(Family.IP, pod)
    ]
    return one


HAIRPIN = "udp 10.244.0.3:40000 > 10.96.0.10:53 in dns3"
ORDINARY = "udp 10.244.0.5:40000 > 10.96.0.10:53 in pod5"


def test_hairpin(worker: Job) -> None:
    branch = branch_to(worker, HAIRPIN, "10.244.0.3")
    assert branch.probability == Fraction(1, 2)
    text = "\n".join(branch.consequences)
    assert "line 84 leads to line 80, which sets mark 0x4000" in text
    assert "line 81 (returns where meta.mark & 0x4000 is not 0x4000) does not match because of it" in text
    assert "line 83 masquerades" in text
    assert "without line 84 it would arrive as 10.244.0.3:40000 > 10.244.0.3:53" in text
    assert "answer itself without passing this node" in text
    assert "line 83 changes the source from 10.244.0.3:40000 to 10.244.0.1:" in text
    assert "leaves on dns3 as 10.96.0.10:53 > 10.244.0.3:40000" in text


def test_ordinary(worker: Job) -> None:
    branch = branch_to(worker, ORDINARY, "10.244.0.3")
    text = "\n".join(branch.consequences)
    assert "line 84 does not apply" in text
    assert "this chain sends packets to 10.244.0.3" in text
    assert "(hairpin)" in text
    assert "the source stays 10.244.0.5:40000" in text
    assert "without" not in text


def test_from_outside_the_cluster(worker: Job) -> None:
    text = "\n".join(
        branch_to(worker, "udp 172.18.0.9:40000 > 10.96.0.10:53 in eth0", "10.244.0.4").consequences
    )
    assert "line 111 leads to line 80" in text
    assert "without line 111 it would arrive as 172.18.0.9:40000 > 10.244.0.4:53" in text


def test_names_and_comments_play_no_part(worker: Job, kind_folder: object) -> None:
    import re
    from pathlib import Path

    from translate.read import read_ruleset

    assert isinstance(kind_folder, Path)
    text = (kind_folder / "rules.iptables-save").read_text()
    text = re.sub(r' -m comment --comment "[^"]*"', "", text)
    names = sorted(set(re.findall(r"^:(K[A-Z0-9-]+|DOCKER_[A-Z]+)", text, re.M)), key=len, reverse=True)
    for number, name in enumerate(names):
        text = re.sub(rf"(?<![A-Z0-9-]){re.escape(name)}(?![A-Z0-9-])", f"c{number}", text)
    assert "KUBE" not in text
    ruleset = read_ruleset(text.encode(), name="bare")
    for packet in (HAIRPIN, ORDINARY):
        plain = branch_to(worker, packet, "10.244.0.3").consequences
        bare = branch_to(Job(rules=ruleset, node=worker.node), packet, "10.244.0.3").consequences
        assert bare == plain


def printed(job: Job, packet: str, *, with_reply: bool = False, every_rule: bool = False) -> str:
    out = io.StringIO()
    explanation = explain(job, parse_packet(packet, job.node))
    print_explanation(explanation, out, with_reply=with_reply, every_rule=every_rule)
    return out.getvalue()


def test_a_probability_has_three_digits() -> None:
    shares = (Fraction(1), Fraction(1, 2), Fraction(715_827_883, 1 << 31), Fraction(1, 64_512))
    shown = ["", "probability 0.5", "probability 0.333", "probability 1.55e-05"]
    assert [chance_text(share) for share in shares] == shown


def test_the_path_rule_by_rule(worker: Job) -> None:
    text = printed(worker, HAIRPIN, with_reply=True)
    lines = [line.strip() for line in text.partition("\npath\n")[2].splitlines()]
    order = ["66:", "98:", "112:", "84:", "80:", "85:", "37:", "70:", "81:", "82:", "83:"]
    at = [next(i for i, line in enumerate(lines) if line.startswith(f"{n} -A")) for n in order]
    assert at == sorted(at)
    assert "branch 1 of 2, probability 0.5" in text
    assert "branch 2 of 2, probability 0.5" in text
    assert "conntrack: NEW" in text
    assert "routing (packet that came in): 10.244.0.3 out of dns3" in text
    assert "end: forward — left on dns3" in text
    assert "reply udp 10.244.0.3:53 > 10.244.0.1:" in text
    assert "conntrack: ESTABLISHED, reply direction" in text


def test_long_runs_of_rules_that_do_not_match_are_counted(worker: Job) -> None:
    packet = "udp 10.244.0.5:40000 > 10.96.0.77:53 in pod5"
    short, full = printed(worker, packet), printed(worker, packet, every_rule=True)
    assert "rules do not match" in short
    assert "98: -A KUBE-SERVICES" not in short
    assert "98: -A KUBE-SERVICES" in full


@pytest.mark.parametrize(
    ("packet", "end"),
    [
        ("tcp 10.244.0.5:1 > 203.0.113.7:443 flags SA", "end: drop — dropped in table filter, FORWARD"),
        ("icmp 10.244.0.5 > 172.18.0.2", "end: local — delivered to the node"),
        ("udp 10.244.0.5:1 > 10.244.0.3:9 ttl 1", "the node answers with icmp-11-0"),
    ],
)
def test_other_ends(worker: Job, packet: str, end: str) -> None:
    assert end in printed(worker, packet)


def test_json(worker: Job) -> None:
    data = json.loads(explanation_json(explain(worker, parse_packet(HAIRPIN, worker.node))))
    assert [b["probability"] for b in data["branches"]] == [0.5, 0.5]
    first = data["branches"][0]
    assert {"line": 84, "matched": True}.items() <= next(
        r for r in first["packet"]["rules"] if r["line"] == 84
    ).items()
    assert first["packet"]["outcome"]["verdict"] == "forward"
    assert first["consequences"]
