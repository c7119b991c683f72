"""The page of many nodes."""

from __future__ import annotations

from nfparity.assess.fleet.grouping import fleet_of
from nfparity.assess.fleet.node import LEAK, NOT_TESTED, Answer, Failure, NodeDifference
from nfparity.assess.severity import Severity
from nfparity.report.pages.fleet import fleet_page
from tests.unit.nfparity.report.pages.helpers.hostile import HOSTILE
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page
from translate.ir import Family


def node(name: str, *differences: NodeDifference) -> Answer:
    titles = tuple({(each.id, f"title of {each.id}") for each in differences if each.id.startswith("K")})
    return Answer(path=f"s/{name}.tar.gz", differences=tuple(sorted(differences)), titles=titles, flows=10)


def page(*answers: Answer) -> Element:
    text = fleet_page(fleet_of(answers, ("--known-only",)), version="1")
    assert text == fleet_page(fleet_of(answers, ("--known-only",)), version="1")
    return checked_page(text)


def test_each_difference_has_its_subjects_and_their_nodes() -> None:
    web = NodeDifference("K01", Family.IP, f"web/{HOSTILE}", 0)
    used = NodeDifference("K01", Family.IP, f"web/{HOSTILE}", 7, Severity.BREAKS)
    leak = NodeDifference(LEAK, Family.IP, "an address", severity=Severity.BEFORE)
    six = NodeDifference(NOT_TESTED, Family.IP6, "no table is for it")
    torn = Answer(path="s/torn.tar.gz", failure=Failure(2, "not a .tar.gz"))
    root = page(node("n2", used, leak), node("n1", web), torn, node("calm", six))
    assert root.all("p", "verdict")[0].text == (
        "2 of 4 nodes have findings; on 1 of them, traffic that works today breaks. 1 could not be assessed."
    )
    first, second = root.all("section", "group")
    assert (first.attributes["id"], second.attributes["id"]) == ("K01-ip", "LEAK-ip")
    (finding,) = first.all("details", "finding")
    assert finding.attributes["data-nodes"] == " 1 2 "
    assert finding.attributes["data-level"] == "breaks"
    assert "on 2 of 4 nodes: n1, n2" in finding.text
    assert "on 1 of 2 nodes" in finding.text
    assert finding.all("p", "command")[0].text == "Reproduce: nfparity assess s/n1.tar.gz --known-only"
    (select,) = (s for s in root.all("select") if s.attributes["id"] == "node")
    assert [option.text for option in select.all("option")] == ["all", "calm", "n1", "n2", "torn"]
    assert "s/torn.tar.gz: not a .tar.gz" in root.all("details", "notes")[0].text
    assert "s/calm.tar.gz: IPv6: no table is for it" in root.all("details", "notes")[1].text


def test_nothing_changes_anywhere() -> None:
    root = page(node("a"), node("b"))
    (verdict,) = root.all("p", "verdict")
    assert verdict.text == "Nothing changes on 2 of 2 nodes."
    assert "good" in verdict.attributes["class"].split()
