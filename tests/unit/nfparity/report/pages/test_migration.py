"""The page of a plan of a migration."""

from __future__ import annotations

from dataclasses import replace

from harness.diff.result import Difference
from nfparity.migrate.planning.planning import PlannedFamily
from nfparity.report.pages.migration import migration_page
from tests.unit.nfparity.report.pages.helpers.hostile import HOSTILE
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page
from tests.unit.nfparity.report.pages.helpers.plans import KUBE, PLAIN, family, planned


def page(*families: PlannedFamily, output: str | None = None) -> Element:
    command = "nfparity migrate plan -o node.plan"
    return checked_page(migration_page(planned(*families), command=command, output=output, version="1"))


def facts(root: Element) -> dict[str, str]:
    (listed, *_) = root.all("dl", "facts")
    return {pair.all("dt")[0].text: pair.all("dd")[0].text for pair in listed.below}


def notes(root: Element) -> dict[str, str]:
    return {each.all("summary")[0].text: each.text for each in root.all("details", "notes")}


def test_a_plan_without_differences_says_what_is_replaced_and_what_to_run() -> None:
    one = family(PLAIN)
    root = page(one, output="node.plan")
    verdict = root.all("p", "verdict")[0]
    assert verdict.text == f"No packet is treated differently, in {one.report.flows} flows."
    assert verdict.attributes["class"] == "verdict good"
    assert not root.all("details", "finding")
    shown = facts(root)
    assert shown["IPv4"] == "iptables-legacy to nftables"
    assert shown["IPv4 removed"] == "filter: 2 rules and 1 chain (WEB)"
    assert shown["IPv4 loaded"].startswith("table ip nfparity: ")
    assert shown["IPv4 packets"] == f"{one.report.flows} flows: nftables 0 different, overlap 0 different"
    assert shown["Reproduce"] == "nfparity migrate plan -o node.plan"
    assert shown["Apply"] == "nfparity migrate apply node.plan"
    assert "WEB" in notes(root)["Chains replaced in IPv4 table filter (1)"]
    assert "the translation does not follow later changes" in notes(root)["Later changes of the rules (1)"]


def test_what_packets_cannot_show_is_to_be_checked_first() -> None:
    root = page(replace(family(PLAIN + KUBE, "filter"), untried=("filter",)))
    verdict = root.all("p", "verdict")[0]
    assert verdict.text.endswith(" 2 points to check before it is applied.")
    assert verdict.attributes["class"] == "verdict attention"
    kube, kept = root.all("details", "finding")
    assert "kube-proxy writes these rules: stop it first" in kube.text
    assert "it is kept and cannot be simulated" in kept.text
    assert facts(root)["IPv4 kept"] == "filter: 2 rules, in iptables"
    assert "Apply" not in facts(root)
    assert "--keep-table nat" in notes(root)["Later changes of the rules (5)"]
    assert "WEB" in notes(root)["Chains kept in IPv4 table filter (1)"]


def test_a_packet_that_differs_comes_first_with_its_expected_path() -> None:
    one = family(KUBE)
    flow = next(flow for flow in one.batch.flows if str(flow.first.packet).endswith("> 10.96.0.10:80"))
    difference = Difference(
        backend="overlap", flow_id=flow.id, flow_source="", step=0, step_text="first packet",
        field="verdict", expected="forward", observed=HOSTILE, rules=(), command="nfparity diff",
        rules_path=one.batch.rules_path, branch=0,
    )  # fmt: skip
    reports = (one.report.backends[0], replace(one.report.backends[1], differing=1))
    root = page(
        replace(one, report=replace(one.report, backends=reports, differences=(difference,))),
        output="node.plan",
    )
    assert root.all("p", "verdict")[0].text.startswith("No plan is written: IPv4: ")
    assert "Apply" not in facts(root)
    group, checks = root.all("section", "group")
    assert group.all("h2")[0].text.startswith("IPv4, overlap 1 of ")
    assert checks.attributes["id"] == "checks"
    (finding,) = group.all("details", "finding")
    assert finding.attributes["data-level"] == "breaks"
    assert any("-j DNAT" in hop.text for hop in finding.all("li", "decides"))
    assert finding.all("p", "command")[0].text == "Reproduce: nfparity migrate plan -o node.plan"
