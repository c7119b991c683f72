"""The page of an assessment."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from nfparity.assess.summary import Summary
from nfparity.report.pages.assessment import assessment_page
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page, everything, parsed


def page(summary: Summary) -> Element:
    return checked_page(assessment_page(summary, version="1.2.3"))


def test_the_page_begins_with_the_verdict_and_the_counts(summary: Summary) -> None:
    root = page(summary)
    (verdict,) = root.all("p", "verdict")
    assert verdict.text == (
        "1 finding breaks traffic that works today; 5 other findings, in 9 flows. IPv6 was not tested."
    )
    assert "good" not in verdict.attributes["class"]
    counts = {
        row.all("th")[0].text: row.all("td")[0].text for row in root.all("table", "counts")[0].all("tr")
    }
    assert counts == {"Breaks": "1", "Changes": "2", "Check": "1", "Existed before": "1", "Not judged": "1"}


def test_the_gravest_findings_come_first(summary: Summary) -> None:
    ids = [section.attributes["id"] for section in page(summary).all("section", "group")]
    assert ids == ["K04-ip", "K17-ip", "UNEXPLAINED-ip", "K08-ip", "LEAK-ip", "NOT-JUDGED-ip"]


def test_each_path_has_hooks_chains_rules_lines_and_services(summary: Summary) -> None:
    (section,) = (s for s in page(summary).all("section", "group") if s.attributes["id"] == "K17-ip")
    (finding,) = section.all("details", "finding")
    before, after = finding.all("section", "side")
    assert (before.all("h3")[0].text, after.all("h3")[0].text) == ("Before", "After")
    assert [hop.text for hop in before.all("li", "chain")][:2] == ["nat PREROUTING", "nat KUBE-SERVICES"]
    (decision,) = (hop for hop in before.all("li", "decides") if "DNAT" in hop.text)
    assert decision.all("span", "line")[0].text == "line 12"
    assert decision.all("span", "service")[0].text == "web/shop:http: endpoint"
    assert decision.all("strong", "mark")[0].text == "decides"
    assert before.all("li", "hook")[0].text.startswith("PREROUTING: tcp 198.51.100.7:40000")
    assert "destination becomes 10.244.0.6:80" in after.text
    differing = [row.all("th")[0].text for row in finding.all("tr", "differs")]
    assert [name.partition(" ")[0] for name in differing][:2] == ["out", "dst"]
    assert finding.all("p", "command")[0].text.endswith("--only K17/a")


def test_the_chains_of_each_path_are_drawn_on_both_sides(summary: Summary) -> None:
    section = next(s for s in page(summary).all("section", "group") if s.attributes["id"] == "K17-ip")
    before, after = (side.all("svg", "drawing") for side in section.all("section", "side"))
    assert [[text.text for text in drawing.all("text")][-3:] for drawing in after] == [
        [
            "NAT: the destination becomes 10.244.0.6:80",
            "leaves by eth0",
            "as 198.51.100.7:40000 > 10.244.0.6:80",
        ]
    ]
    chains = [text.text for group in before[0].all("g", "chain-box") for text in group.all("text")]
    assert "KUBE-SEP-AAAAAAAAAAAAAAAA" in chains
    decisions = [group.all("text")[0].text for group in before[0].all("g", "decides-box")]
    assert "sends to 10.244.0.5:8080" in decisions


def test_a_later_packet_has_the_path_of_its_connection_before_it(summary: Summary) -> None:
    section = next(s for s in page(summary).all("section", "group") if s.attributes["id"] == "UNEXPLAINED-ip")
    titles = [title.text for title in section.all("section", "side")[0].all("h4")]
    assert titles == ["First packet of the connection", "Through the iptables rules"]


def test_a_hostile_text_stays_a_text(summary: Summary) -> None:
    text = assessment_page(summary, version="1.2.3")
    root = checked_page(text)
    assert len(root.all("script")) == 1
    assert len(root.all("svg")) == len(root.all("svg", "drawing"))
    assert not root.all("b", "x")
    (subject,) = (each.text for each in root.all("strong") if each.text.startswith("web/</script>"))
    for shown in (
        "<script>hacked()</script>",
        "{{ 7 * 7 }}",
        "\\u202e",
        "\\u0000",
        "\\u001b[31m",
        "\\udcff",
        "\N{SNOWMAN}",
    ):
        assert shown in subject
    for hidden in ("\u202e", "\u2066", "\u200f", "\u2028", "\x1b"):
        assert hidden not in root.text
    assert "<svg/onload=hacked()>" in root.text


def test_the_same_assessment_is_the_same_page(summary: Summary) -> None:
    assert assessment_page(summary, version="1") == assessment_page(summary, version="1")


def test_changes_that_break_nothing(summary: Summary) -> None:
    (assessment,) = summary.assessments
    mild = replace(assessment, findings=assessment.findings[1:], disputed=())
    (verdict,) = page(replace(summary, assessments=(mild,), untested=())).all("p", "verdict")
    assert verdict.text == "No compared packet loses its receiver; 4 other findings, in 9 flows."
    assert "good" not in verdict.attributes["class"].split()


def test_nothing_changes(summary: Summary) -> None:
    (one,) = summary.assessments
    calm = replace(one, findings=(), unexplained=(), leaks=(), disputed=())
    root = page(replace(summary, assessments=(calm,), untested=()))
    (verdict,) = root.all("p", "verdict")
    assert verdict.text == "Nothing changes: 9 flows have the same outcome."
    assert "good" in verdict.attributes["class"].split()
    assert not root.all("form")


def test_the_details_of_later_findings_are_kept_as_data(
    many: Callable[[int], Summary], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nfparity.report.pages.page.LAZY_FROM", 2)
    root = page(many(5))
    findings = root.all("details", "finding")
    assert len(findings) == 5
    bodies = json.loads(root.all("script")[0].text)
    for number, finding in enumerate(findings[2:]):
        assert finding.attributes["data-body"] == str(number)
        later = parsed("\n".join(bodies["lines"][line] for line in bodies["findings"][number]))
        assert [hop.text for hop in later.all("li", "hop")] == [
            hop.text for hop in findings[0].all("li", "hop")
        ]
        assert finding.all("p", "command")
    assert len(set(bodies["lines"])) == len(bodies["lines"])
    assert "the paths of the first 2 findings" in root.all("noscript")[0].text


def test_hostile_texts_are_harmless_in_data(summary: Summary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfparity.report.pages.page.LAZY_FROM", 0)
    root = page(summary)
    data, script = root.all("script")
    assert not set("<>&'") & set(data.text)
    bodies = json.loads(data.text)
    parts = [parsed("\n".join(bodies["lines"][line] for line in body)) for body in bodies["findings"]]
    assert {element.tag for part in parts for element in everything(part)}.isdisjoint({"script", "img"})
    for part in parts:
        assert part.all("svg") == part.all("svg", "drawing")
    assert any("<svg/onload=hacked()>" in part.text for part in parts)
    assert "hacked" not in script.text
