"""The assessment as text, as JSON and as SARIF."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pytest

from backends.model.flow import Flow, Send
from backends.model.node import node_from_json
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.assessing import Assessment, Checked, Finding
from nfparity.assess.catalogue import Decided, catalogue, entry
from nfparity.assess.difference import ChangedPacket, Evidence
from nfparity.assess.leaks import Leak
from nfparity.assess.node.facts import gather
from nfparity.assess.replay.replaying import Disputed
from nfparity.assess.summary import Summary, Untested
from nfparity.kubeproxy import recover
from nfparity.report.assessjson import assessment_json
from nfparity.report.assessjunit import assessment_junit
from nfparity.report.assessment import print_assessment
from nfparity.report.assesssarif import assessment_sarif
from nfparity.report.outcometext import outcome_text
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif
from translate.ir import Family, Origin, Protocol, parse_address
from translate.read import read_ruleset

RULES = "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n"
NODE = '{"interfaces": {"eth0": ["192.168.0.2/24"]}}'


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


def changed(name: str = "K01/a/b:c/outside") -> ChangedPacket:
    packet = Packet(
        family=Family.IP, src=ip("198.51.100.7"), dst=ip("10.0.0.1"), proto=Protocol.TCP, sport=1, dport=30080
    )
    endpoint = ip("10.244.0.5")
    forwarded = Outcome(
        verdict=Verdict.FORWARD, out="cni0", src=packet.src, dst=endpoint, sport=1, dport=80, dnat=True
    )
    local = Outcome(verdict=Verdict.LOCAL, src=packet.src, dst=packet.dst, sport=1, dport=30080)
    flow = Flow(id=name, steps=(Send(packet=packet, entry="eth0"),))
    return ChangedPacket(
        flow=flow, step=0, packet=packet, entry="eth0", before=forwarded, after=local, fields=("verdict",)
    )


@pytest.fixture
def summary() -> Summary:
    ruleset = read_ruleset(RULES.encode(), name="dump")
    facts = gather(ruleset, node_from_json(NODE, name="node"), recover(ruleset), version=(1, 30))
    line = Evidence(Origin("folder/dump file", 7, 0, "-A KUBE-NODEPORTS -j X"), 3)
    finding = Finding(entry=entry("K01"), subject="a/b:c", lines=(line,), examples=(changed(),))
    other = Finding(entry=None, subject="?", examples=(changed("odd"),))
    leak = Leak(kind="an address", device="eth0", examples=(changed("LEAK/x"),))
    one = Assessment(
        facts=facts,
        findings=(finding,),
        unexplained=(other,),
        leaks=(leak,),
        checked=(Checked(entry=entry("K04"), flows=2),),
        flows=9,
    )
    return Summary(
        snapshot="dump",
        version=(1, 30),
        against="new.nft",
        assessments=(one,),
        words=("--against", "new.nft"),
    )


def shown(summary: Summary) -> str:
    stream = io.StringIO()
    print_assessment(summary, stream)
    return stream.getvalue()


def test_the_text_says_what_changes_for_whom_and_shows_it(summary: Summary) -> None:
    text = shown(summary)
    for words in (
        "K01  node ports answer on the node's primary address only",
        "a/b:c (line 7)",
        "tcp 198.51.100.7:1 > 10.0.0.1:30080 in eth0",
        "leaves by cni0, as 198.51.100.7:1 > 10.244.0.5:80",
        "to the node's own sockets, as it was sent",
        "a/b:c: 3 packets matched these lines",
        "--only K01/a/b:c/outside",
        "UNEXPLAINED",
        "LEAK  an address",
        "not found on this node: K04",
        "nfparity assess dump --against new.nft --only ID",
    ):
        assert words in text, words


def test_a_dump_without_counters_says_so(summary: Summary) -> None:
    (one,) = summary.assessments
    (finding,) = one.findings
    bare = replace(finding, lines=tuple(replace(line, packets=None) for line in finding.lines))
    assert "no counters" in shown(replace(summary, assessments=(replace(one, findings=(bare,)),)))


def test_nothing_is_said_in_a_line(summary: Summary) -> None:
    (one,) = summary.assessments
    calm = replace(summary, assessments=(replace(one, findings=(), unexplained=(), leaks=()),))
    assert not calm.changes
    assert "nothing changes: 9 flows have the same outcome" in shown(calm)


def test_json_holds_everything(summary: Summary) -> None:
    data = json.loads(assessment_json(summary))
    assert (data["changes"], data["kubernetes"], data["against"]) == (True, "1.30", "new.nft")
    (family,) = data["families"]
    (finding,) = family["findings"]
    assert (finding["id"], finding["affects"], finding["traffic seen"]) == ("K01", "a/b:c", 3)
    assert finding["lines"][0]["line"] == 7
    (example,) = finding["examples"]
    assert example["before"]["dst"] == "10.244.0.5"
    assert example["after"]["verdict"] == "local"
    assert example["reproduce"].endswith("--only K01/a/b:c/outside")
    assert len(family["unexplained"]) == len(family["leaks"]) == 1
    assert family["checked"] == [{"id": "K04", "flows": 2}]


def test_sarif_is_what_its_specification_asks_for(summary: Summary) -> None:
    run = checked_sarif(json.loads(assessment_sarif(summary, version="1.2.3")))
    ids = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert ids == {e.id for e in catalogue() if e.decided is not Decided.OUT_OF_REACH} | {
        "LEAK",
        "UNEXPLAINED",
        "NOT-JUDGED",
        "ORDER",
    }
    assert [result["ruleId"] for result in run["results"]] == ["K01", "UNEXPLAINED", "LEAK"]
    first = run["results"][0]["locations"][0]["physicalLocation"]
    assert first["region"] == {"startLine": 7, "snippet": {"text": "-A KUBE-NODEPORTS -j X"}}
    assert first["artifactLocation"]["uri"] == "folder/dump%20file"


def with_sides(summary: Summary) -> Summary:
    """The same, with what was sent where, one disputed flow, and a family left out."""
    (one,) = summary.assessments
    ids = ("K01/a/b:c/outside", "odd", "LEAK/x", "fine", "doubted")
    sides = (
        ("iptables-legacy", dict.fromkeys(ids, 0.25)),
        ("kube-proxy-nftables", dict.fromkeys(ids, 0.5)),
    )
    static_findings = Finding(entry=entry("K08"), subject="Linux", description="Linux is 4.19, below 5.13")
    disputed = (Disputed("doubted", "verdict: drop simulated, forward seen"),)
    more = replace(one, sides=sides, disputed=disputed, findings=(*one.findings, static_findings))
    return replace(summary, assessments=(more,), untested=(Untested(Family.IP6, "no table is for it"),))


def test_junit_has_a_case_for_each_flow_on_each_side(summary: Summary) -> None:
    root = checked_junit(assessment_junit(with_sides(summary), times=True))
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["ip iptables-legacy", "ip kube-proxy-nftables", "ip snapshot", "ip6 not tested"]
    before, after = suites["ip iptables-legacy"], suites["ip kube-proxy-nftables"]
    assert (before.get("tests"), before.get("failures"), before.get("time")) == ("5", "1", "1.250")
    assert before.find("testcase[@name='doubted']/failure") is not None
    assert (after.get("tests"), after.get("failures"), after.get("time")) == ("5", "3", "2.500")
    failure = after.find("testcase[@name='K01/a/b:c/outside']/failure")
    assert failure is not None
    assert failure.get("message") == "K01: a/b:c"
    assert "--only K01/a/b:c/outside" in (failure.text or "")
    assert suites["ip snapshot"].get("failures") == "1"
    assert suites["ip6 not tested"].get("errors") == "1"
    checked_junit(assessment_junit(with_sides(summary), times=False), times=False)


def test_what_was_not_tested_is_told_in_every_form(summary: Summary) -> None:
    partial = with_sides(summary)
    assert "not tested: IPv6: no table is for it" in shown(partial)
    assert json.loads(assessment_json(partial))["not tested"] == ["IPv6: no table is for it"]
    run = checked_sarif(json.loads(assessment_sarif(partial, version="1.2.3")))
    assert not run["invocations"][0]["executionSuccessful"]
    assert [result["ruleId"] for result in run["results"]].count("NOT-JUDGED") == 1


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        (Outcome(verdict=Verdict.DROP), "dropped, without an answer"),
        (Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset"), "rejected with tcp-reset"),
        (Outcome(verdict=Verdict.FORWARD, out="eth0", src=1, dst=2), "leaves by eth0, as it was sent"),
        (
            Outcome(verdict=Verdict.LOCAL, src=1, dst=ip("10.0.0.1"), sport=5, dport=80, dnat=True),
            "to the node's own sockets, as 0.0.0.1:5 > 10.0.0.1:80",
        ),
    ],
)
def test_outcomes_in_words(outcome: Outcome, text: str) -> None:
    assert outcome_text(outcome, Family.IP) == text


def test_ports_of_ipv6_stand_behind_brackets() -> None:
    outcome = Outcome(verdict=Verdict.FORWARD, out="eth0", src=1, dst=2, sport=5, dport=80, dnat=True)
    assert outcome_text(outcome, Family.IP6) == "leaves by eth0, as [::1]:5 > [::2]:80"
