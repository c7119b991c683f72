"""The page of the rules that packets hit."""

from __future__ import annotations

from pathlib import Path

from harness.corpus.coverage import coverage
from harness.corpus.reachability import RuleId
from nfparity.report.pages.coverage import Covered, coverage_page
from tests.lab.commands import run_command
from tests.unit.nfparity.report.pages.helpers.hostile import CHAIN, COMMENT, HOSTILE
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page
from translate.read import read_ruleset

RULES = f"""*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:{CHAIN} - [0:0]
:LOST - [0:0]
[7:420] -A INPUT -p tcp -m comment --comment "{COMMENT}" -j ACCEPT
[0:0] -A FORWARD -j {CHAIN}
[0:0] -A {CHAIN} -p udp -j DROP
[0:0] -A LOST -j DROP
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
[1:1] -A PREROUTING -i eth0 -j NOTRACK
COMMIT
"""
NODE = '{"interfaces": {"eth0": ["192.168.0.2/24"]}}'
FLOW = (
    '{"id": "a", "in": "eth0", "src": "192.168.0.9", "dst": "192.168.0.2", "proto": "tcp", "sport": 2,'
    ' "dport": 1}\n'
)


def page(counts: dict[RuleId, tuple[int, int | None]]) -> Element:
    ruleset = read_ruleset(RULES.encode(), name="rules")
    report = coverage(ruleset, [counts], counted_by="simulator", flows=3)
    return checked_page(coverage_page((Covered(report, ruleset),), command="nfparity", version="1"))


def findings(root: Element) -> list[tuple[str, str]]:
    return [
        (each.attributes["data-level"], each.all("strong")[0].text) for each in root.all("details", "finding")
    ]


def test_rules_that_are_not_hit_come_before_those_that_cannot_be() -> None:
    root = page({("raw", "PREROUTING", 0): (2, 0), ("filter", "FORWARD", 0): (1, 0)})
    assert findings(root) == [
        ("breaks", "INPUT rule 1"),
        ("breaks", f"{CHAIN} rule 1"),
        ("snapshot", "LOST rule 1"),
    ]
    verdict = root.all("p", "verdict")[0]
    assert verdict.text == "2 of 5 rules are hit; 2 are not; 1 cannot be reached."
    assert verdict.attributes["class"] == "verdict attention"
    first, second, lost = root.all("details", "finding")
    assert HOSTILE.split("<")[0] in first.text
    assert "no packet came to it" in first.text
    assert first.all("ul", "lines")[0].text.strip().startswith("rules:6 ")
    assert "7 packets counted" in first.text
    assert "no rule jumps to chain LOST" in lost.text
    assert "-p udp -j DROP" in second.all("summary")[0].text
    assert [(option.attributes["value"], option.text) for option in root.all("option")][-2:] == [
        ("", "all"),
        ("rules-0-filter", "filter (3)"),
    ]
    assert "raw: 1 of 1 rule hit" in root.all("details", "notes")[0].text


def test_the_numbers_say_why_a_rule_is_not_hit() -> None:
    root = page({("filter", "INPUT", 0): (0, 4), ("filter", "FORWARD", 0): (0, None)})
    texts = [each.all("summary")[0].text for each in root.all("details", "finding")]
    assert "4 packets came to it and did not match" in texts[0]
    assert "the kernel counted no packet for it" in texts[1]


def test_a_packet_that_disproves_a_proof_is_a_finding() -> None:
    root = page({("filter", "LOST", 0): (1, 0)})
    assert ("doubt", "LOST rule 1") in findings(root)
    assert "for 1, proof and packets disagree" in root.all("p", "verdict")[0].text


def test_everything_is_hit() -> None:
    chains = (("filter", "INPUT"), ("filter", "FORWARD"), ("filter", CHAIN), ("raw", "PREROUTING"))
    root = page({(table, chain, 0): (1, 0) for table, chain in chains})
    assert root.all("p", "verdict")[0].attributes["class"] == "verdict good"
    assert findings(root) == [("snapshot", "LOST rule 1")]


def test_the_page_has_the_command_that_makes_it(tmp_path: Path) -> None:
    rules, node = tmp_path / "my rules", tmp_path / "node"
    rules.write_text(
        "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j DROP\n-A INPUT -p udp -j DROP\nCOMMIT\n"
    )
    node.write_text(NODE)
    words = ("corpus", "coverage", str(rules), "--family", "ip", "--corpus", "-", "--node", str(node))
    done = run_command(*words, "--only", "a", "--format", "html", stdin=FLOW)
    assert (done.returncode, done.stderr) == (1, "")
    root = checked_page(done.stdout)
    assert findings(root) == [("breaks", "INPUT rule 2")]
    command = f"nfparity corpus coverage '{rules}' --family ip --corpus - --node {node} --only a"
    assert f"{command} --format html" in root.all("dl", "facts")[0].text
