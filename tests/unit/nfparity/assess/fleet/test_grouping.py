"""Nodes with the same findings, and what is said of them."""

from __future__ import annotations

import io
import json

import pytest

from nfparity.assess.fleet.grouping import Fleet, fleet_of
from nfparity.assess.fleet.node import LEAK, NOT_TESTED, Answer, Failure, NodeDifference
from nfparity.report.fleet import answer_line, fleet_json, print_fleet
from translate.ir import Family


def found(k: str, subject: str, packets: int | None = None, family: Family = Family.IP) -> NodeDifference:
    return NodeDifference(k, family, subject, packets)


def node(name: str, *findings: NodeDifference) -> Answer:
    titles = tuple({(one.id, f"title of {one.id}") for one in findings if one.id != LEAK})
    return Answer(path=f"s/{name}.tar.gz", differences=tuple(sorted(findings)), titles=titles, flows=10)


WEB, DNS = "team/web:http", "kube-system/dns:dns"


@pytest.fixture
def fleet() -> Fleet:
    answers = [
        node("n1", found("K01", WEB, 0), found("K02", WEB)),
        node("calm"),
        node("n2", found("K02", WEB), found("K01", WEB, 7)),
        Answer(path="s/cut.tar.gz", failure=Failure(2, "s/cut.tar.gz: not a .tar.gz\nmore of it")),
        node("n3", found("K01", DNS), found(LEAK, "an address (not after)")),
        Answer(path="s/torn.tar.gz", failure=Failure(2, "s/torn.tar.gz: not a .tar.gz\nmore of it")),
    ]
    return fleet_of(answers, ("--known-only",))


def test_groups_are_those_with_equal_findings_the_largest_first(fleet: Fleet) -> None:
    paths = [tuple(p.removeprefix("s/").removesuffix(".tar.gz") for p in one.paths) for one in fleet.alike]
    assert paths == [("n1", "n2"), ("n3",), ("calm",), ("cut", "torn")]
    assert fleet.alike[0].subjects() == {"K01": (WEB,), "K02": (WEB,)}
    assert (fleet.nodes, fleet.failed, fleet.flows) == (6, 2, 40)


def test_counters_part_no_nodes_and_are_told(fleet: Fleet) -> None:
    assert fleet.alike[0].traffic_seen("K01") == 1
    assert fleet.alike[0].traffic_seen("K02") is None


def test_a_family_that_was_not_tested_is_no_finding_and_has_a_status_of_its_own() -> None:
    partial = node("a", found(NOT_TESTED, "no table is for it", family=Family.IP6))
    assert [partial.status, node("b").status, node("c", found("K01", WEB)).status] == [4, 0, 1]
    fleet = fleet_of([partial, node("b")])
    assert (fleet.changes, fleet.status) == (False, 4)
    shown = io.StringIO()
    print_fleet(fleet, shown)
    assert "NOT TESTED" in shown.getvalue()
    assert "0 known differences" in shown.getvalue()


def test_families_are_told_apart() -> None:
    both = fleet_of([node("a", found("K01", WEB)), node("b", found("K01", WEB, None, Family.IP6))])
    assert len(both.alike) == 2


def test_a_difference_knows_how_far_it_is_spread(fleet: Fleet) -> None:
    spread = {one.id: (one.nodes, one.subjects, one.title) for one in fleet.spread}
    assert spread == {
        "K01": (3, 2, "title of K01"),
        "K02": (2, 1, "title of K02"),
        LEAK: (1, 1, ""),
    }


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ([node("a")], 0),
        ([node("a"), node("b", found("K01", WEB))], 1),
        ([node("a", found("K01", WEB)), node("b", found(NOT_TESTED, "no table"))], 1),
        ([node("a", found("K01", WEB)), Answer(path="b", failure=Failure(2, "cut"))], 2),
        ([Answer(path="a", failure=Failure(3, "no root")), Answer(path="b", failure=Failure(2, "cut"))], 3),
    ],
)
def test_the_exit_status_is_the_worst_of_any(answers: list[Answer], status: int) -> None:
    assert fleet_of(answers).status == status


def test_the_text_names_nodes_findings_and_how_to_see_more(fleet: Fleet) -> None:
    stream = io.StringIO()
    print_fleet(fleet, stream)
    text = stream.getvalue()
    for words in (
        "2 nodes: n1, n2\n",
        f"  K01          {WEB} (traffic seen on 1 of 2)\n",
        f"  K02          {WEB}\n",
        "  reproduce    nfparity assess s/n1.tar.gz --known-only\n",
        "1 node: calm\n               nothing changes\n",
        "2 nodes: cut, torn\n  not assessed not a .tar.gz more of it\n",
        "  K01          3 nodes, 2 subjects: title of K01\n",
        "6 nodes in 4 groups, 2 not assessed: 2 known differences, 0 with unexplained ones; 40 flows\n",
    ):
        assert words in text, words


def test_long_lists_are_cut_in_text_and_whole_in_json() -> None:
    subjects = [found("K01", f"a/s{n:02}:p") for n in range(9)]
    fleet = fleet_of([node(f"n{n:02}", *subjects) for n in range(20)])
    stream = io.StringIO()
    print_fleet(fleet, stream)
    assert "n11, … and 8 more" in stream.getvalue()
    assert "a/s05:p and 3 more" in stream.getvalue()
    (alike,) = json.loads(fleet_json(fleet))["groups"]
    assert len(alike["snapshots"]) == 20
    assert len(alike["findings"]) == 9


def test_json_has_failures_and_what_is_in_use(fleet: Fleet) -> None:
    data = json.loads(fleet_json(fleet))
    assert (data["nodes"], data["failed"], data["changes"]) == (6, 2, True)
    assert data["groups"][0]["traffic seen"] == {"K01": 1, "K02": None}
    assert data["groups"][3]["failure"]["status"] == 2
    assert data["groups"][3]["snapshots"] == ["s/cut.tar.gz", "s/torn.tar.gz"]


@pytest.mark.parametrize(
    ("answer", "again", "said"),
    [
        (node("a"), False, "s/a.tar.gz: nothing changes; 10 flows"),
        (node("a", found("K01", WEB), found("K01", DNS)), False, "s/a.tar.gz: K01; 10 flows"),
        (Answer(path="a", failure=Failure(2, "cut\nhere")), False, "a: not assessed: cut"),
        (
            Answer(path="a", failure=Failure(3, "no memory", again=True)),
            True,
            "a: will be retried: no memory",
        ),
    ],
)
def test_a_line_for_each_node(answer: Answer, again: bool, said: str) -> None:
    assert answer_line(answer, again=again) == said


def test_what_all_groups_share_is_told_once() -> None:
    groups = [
        node("a", found("K01", WEB, 3), found("K20", WEB)),
        node("b", found("K01", WEB, 0), found("K20", DNS)),
        node("c", found("K01", WEB, 1)),
        node("calm"),
    ]
    fleet = fleet_of(groups)
    assert fleet.shared is not None
    assert fleet.shared.differences == (found("K01", WEB),)
    assert fleet.shared.traffic_seen("K01") == 2
    stream = io.StringIO()
    print_fleet(fleet, stream)
    text = stream.getvalue()
    assert text.startswith(
        f"all 3 nodes with findings\n  K01          {WEB} (traffic seen on 2 of 3)\n\n1 node: a\n  K20"
    )
    assert text.count(f"K01          {WEB}") == 1
    assert "1 node: c\n               no other findings\n" in text
    assert len(json.loads(fleet_json(fleet))["groups"][0]["findings"]) == 2


def test_one_group_shares_with_nobody() -> None:
    assert fleet_of([node("a", found("K01", WEB)), node("b", found("K01", WEB)), node("calm")]).shared is None
    assert fleet_of([node("a", found("K01", WEB)), node("b", found("K02", WEB))]).shared is None
