"""The plan of a rollout, by groups of nodes."""

from __future__ import annotations

import io
import json

import pytest

from nfparity.assess.fleet.grouping import Fleet, fleet_of
from nfparity.assess.fleet.node import LEAK, NOT_JUDGED, ORDER, Answer, Failure, NodeDifference
from nfparity.assess.fleet.rollout import Readiness, rollout
from nfparity.assess.severity import Severity
from nfparity.report.fleet import fleet_json, print_fleet
from translate.ir import Family


def node(name: str, *differences: tuple[str, Severity]) -> Answer:
    rows = tuple(sorted(NodeDifference(k, Family.IP, "a/b", None, severity) for k, severity in differences))
    return Answer(path=f"s/{name}", differences=rows)


@pytest.fixture
def fleet() -> Fleet:
    return fleet_of(
        [
            node("two", ("K01", Severity.BREAKS), ("K02", Severity.BREAKS)),
            node("one", ("K01", Severity.BREAKS), ("K06", Severity.BREAKS)),
            node("old", ("K08", Severity.SNAPSHOT)),
            node("mild", ("K05", Severity.CHANGES)),
            node("calm", (LEAK, Severity.BEFORE)),
            node("order", (ORDER, Severity.BREAKS)),
            node("doubt", (NOT_JUDGED, Severity.NOT_JUDGED)),
            Answer(path="s/cut", failure=Failure(2, "cut")),
        ],
        ("--known-only",),
    )


def test_those_that_can_switch_come_first_and_then_those_with_the_fewest_changes(fleet: Fleet) -> None:
    steps = rollout(fleet)
    assert [(step.readiness, step.snapshots) for step in steps] == [
        (Readiness.NOW, ("s/calm",)),
        (Readiness.READ, ("s/mild",)),
        (Readiness.FIRST, ("s/old",)),
        (Readiness.FIRST, ("s/one",)),
        (Readiness.FIRST, ("s/order",)),
        (Readiness.FIRST, ("s/two",)),
        (Readiness.UNKNOWN, ("s/cut",)),
        (Readiness.UNKNOWN, ("s/doubt",)),
    ]
    # K06 needs nothing: clients get an error at once.
    assert [ids for ids, _ in steps[3].actions] == ["K01"]
    assert [ids for ids, _ in steps[5].actions] == ["K01", "K02"]


def test_the_gravest_node_of_a_group_decides() -> None:
    (step,) = rollout(fleet_of([node("a", ("K01", Severity.CHANGES)), node("b", ("K01", Severity.BREAKS))]))
    assert (step.readiness, step.snapshots) == (Readiness.FIRST, ("s/a", "s/b"))


def test_text_and_json_have_the_advice_and_a_command(fleet: Fleet) -> None:
    stream = io.StringIO()
    print_fleet(fleet, stream)
    text = stream.getvalue()
    assert (
        "rollout, in this order\n1. 1 node: can switch now: calm\n2. 1 node: can switch after a look" in text
    )
    assert "  K08          update the node before changing the mode of its kube-proxy\n" in text
    assert "  check        nfparity assess s/old --known-only --fail-on breaks\n" in text
    plan = json.loads(fleet_json(fleet))["rollout"]
    assert plan[0] == {
        "readiness": "can switch now",
        "snapshots": ["s/calm"],
        "actions": [],
        "check": "nfparity assess s/calm --known-only --fail-on breaks",
    }
    assert plan[4]["actions"][0]["differences"] == "ORDER"
