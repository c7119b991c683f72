"""Explanations of rules with matches and targets that are not modelled."""

from __future__ import annotations

import io

import pytest

from backends.model.contract import Job
from backends.model.node import Node
from harness.explain.description import description_lines
from harness.explain.explain import explain
from harness.explain.packetspec import parse_packet
from harness.report.explanation import print_explanation
from translate.ir import Family
from translate.read import read_save

RULES = """\
*filter
:FORWARD ACCEPT [0:0]
-A FORWARD -p tcp -m osf --genre Linux -j LOG
-A FORWARD -p tcp -m osf --genre Linux -j DROP
-A FORWARD -p tcp -j ULOG
COMMIT
"""
UNKNOWN = "-j ULOG is not modelled: Linux has had no ULOG since 3.17; NFLOG took its place"


def explained(node: Node, *, with_reply: bool) -> str:
    job = Job(rules=read_save(RULES, name="osf.rules", family=Family.IP), node=node)
    out = io.StringIO()
    explanation = explain(job, parse_packet("tcp 10.244.0.5 > 192.0.2.9:80", node))
    print_explanation(explanation, out, with_reply=with_reply, every_rule=False)
    return out.getvalue()


@pytest.fixture
def text(worker: Job) -> str:
    return explained(worker.node, with_reply=False)


def test_a_rule_that_may_match_without_consequence(text: str) -> None:
    assert (
        text.count("several genres have the same one: logs it") == 4
    )  # in the verdict and in the path of both branches


def test_an_effect_that_is_not_modelled(text: str) -> None:
    assert f"→ yes: lets the packet go on ({UNKNOWN})" in text


def test_branches_of_the_reply_are_shown_with_the_reply(text: str, worker: Job) -> None:
    assert "branch 2 of 2\n  if line 4 does not match packet 1" in text
    assert "packet 2 that comes to it" not in text
    assert "branch 3 of 3" in explained(worker.node, with_reply=True)


def test_the_description_of_an_effect() -> None:
    lines = list(description_lines(read_save(RULES, name="osf.rules", family=Family.IP)))
    assert "  3. line 5: lets the packet go on where l4.proto is tcp" in lines
    assert f"       unknown: {UNKNOWN}" in lines
