from __future__ import annotations

import json

import pytest

from backends.model.flow import Flow, Send
from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Packet
from nfparity.assess.accepted import Accepted
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import entry
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.leaks import Leak
from nfparity.assess.node.facts import Facts
from nfparity.assess.summary import Summary
from nfparity.report.assessjson import assessment_json
from translate.errors import InputError, ParseError
from translate.ir import Family, Protocol


def changed(name: str) -> ChangedPacket:
    packet = Packet(family=Family.IP, src=1, dst=2, proto=Protocol.TCP, sport=1, dport=2)
    flow = Flow(id=name, steps=(Send(packet=packet, entry="eth0"),))
    return ChangedPacket(
        flow=flow,
        step=0,
        packet=packet,
        entry="eth0",
        before=Outcome(verdict=Verdict.FORWARD, out="cni0", src=1, dst=2),
        after=Outcome(verdict=Verdict.DROP),
    )


@pytest.fixture
def summary(facts: Facts) -> Summary:
    assessment = Assessment(
        facts=facts,
        findings=(
            Finding(entry=entry("K01"), subject="shop/web:http", examples=(changed("K01/shop/web:http"),)),
            Finding(entry=entry("K01"), subject="shop/db:sql", examples=(changed("K01/shop/db:sql"),)),
            Finding(entry=entry("K31"), subject="eth0", description="a fact"),
        ),
        unexplained=(Finding(entry=None, subject="?", examples=(changed("nat/7"),)),),
        leaks=(Leak(kind="an address", device="eth0", examples=(changed("LEAK/x"),)),),
    )
    return Summary(snapshot="node", version=(1, 30), against=None, assessments=(assessment,))


def left(summary: Summary) -> list[str]:
    (assessment,) = summary.assessments
    named = [f"{finding.entry.id}/{finding.subject}" for finding in assessment.findings if finding.entry]
    return [
        *named,
        *(f.examples[0].flow.id for f in assessment.unexplained),
        *(x.kind for x in assessment.leaks),
    ]


def test_a_report_accepts_its_own_findings(summary: Summary) -> None:
    accepted = Accepted.of_report(assessment_json(summary), name="report")
    after = accepted.removed_from(summary)
    assert (left(after), after.accepted, after.changes) == ([], 5, False)


def test_new_findings_remain(summary: Summary) -> None:
    report = json.loads(assessment_json(summary))
    (family,) = report["families"]
    del family["findings"][1]
    family["unexplained"] = family["leaks"] = []
    after = Accepted.of_report(json.dumps(report), name="report").removed_from(summary)
    assert left(after) == ["K01/shop/db:sql", "nat/7", "an address"]
    assert after.accepted == 2


def test_findings_of_another_family_remain(summary: Summary) -> None:
    report = assessment_json(summary).replace('"family": "ip"', '"family": "ip6"')
    assert Accepted.of_report(report, name="report").removed_from(summary).accepted == 0


def test_names(summary: Summary) -> None:
    after = Accepted.of_names(["K01/shop/web:http", "K31"]).removed_from(summary)
    assert left(after) == ["K01/shop/db:sql", "nat/7", "an address"]
    assert left(Accepted.of_names(["K01"]).removed_from(summary)) == ["K31/eth0", "nat/7", "an address"]


def test_both_together(summary: Summary) -> None:
    report = Accepted.of_report('{"families": []}', name="report")
    assert report.joined(Accepted.of_names(["K01"])).removed_from(summary).accepted == 2


@pytest.mark.parametrize("name", ["K99", "web", "", "K01shop"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(InputError, match="no known difference has this id"):
        Accepted.of_names([name])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "report:1:2: "),
        ("[]", "report:1:1: expected a report of nfparity assess --format json"),
        ("{}", "report:1:1: expected a report of nfparity assess --format json"),
        (
            '{"families": [{"family": "ip", "findings": [3]}]}',
            "report:1:45: families[0].findings[0]: expected an object",
        ),
        ('{"families": [{"findings": [{"id": 4}]}]}', "report:1:30: "),
    ],
)
def test_other_files(text: str, said: str) -> None:
    with pytest.raises(ParseError) as caught:
        Accepted.of_report(text, name="report")
    assert str(caught.value).startswith(said)
