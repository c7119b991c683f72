from __future__ import annotations

import dataclasses
import io
import json

from harness.diff.result import BackendReport, CaseResult, Difference, ParityReport
from harness.report.jsonreport import parity_json
from harness.report.junit import parity_junit
from harness.report.paritysarif import parity_sarif
from harness.report.text import print_parity
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif
from translate.errors import Note
from translate.ir import Origin

DIFFERENCE = Difference(
    backend="nftables",
    flow_id="case/dns",
    flow_source="flows.jsonl:3",
    step=1,
    step_text="reply (step 1)",
    field="src",
    expected="10.96.0.10",
    observed=None,
    rules=("rules:85: -A X -j DNAT", "rules:9: -A Y -j ACCEPT"),
    command="nfparity diff rules --only case/dns",
)


IDS = ("case/dns", *(f"case/{n}" for n in range(9)))
CASES = tuple(CaseResult(name, 0.125) for name in IDS)
REFUSING = BackendReport(
    name="iptables-nft",
    flows=8,
    untested=("cannot express the rules: \x01",),
    cases=(*CASES[:8], *(CaseResult(name, untested="cannot express the rules: \x01") for name in IDS[8:])),
)


def report(*differences: Difference) -> ParityReport:
    differing = len({d.flow_id for d in differences})
    return ParityReport(
        level=1,
        flows=10,
        chancy=2,
        left_open=0,
        open_rules=(),
        repeated=4,
        miss=1e-9,
        share_tests=2,
        false_alarm_rate=1e-6,
        backends=(
            BackendReport(name="nftables", flows=10, differing=differing, cases=CASES),
            BackendReport(name="tc-ebpf", skipped="no \x01 headers"),
        ),
        differences=differences,
        assumed=("interface eth0",),
    )


def not_tested(one: ParityReport) -> ParityReport:
    gone = BackendReport(name="gone", untested=("cannot run here: no such kernel",))
    return dataclasses.replace(one, backends=(*one.backends, REFUSING, gone))


def text(one: ParityReport) -> str:
    out = io.StringIO()
    print_parity(one, out)
    return out.getvalue()


def test_text_of_parity() -> None:
    shown = text(report())
    assert "parity: 10 flows at -O1" in shown
    assert "1 backend skipped" in shown
    assert "tc-ebpf" in shown
    assert "skipped: no" in shown
    assert "assumed interface eth0" in shown
    assert "\x1b" not in shown


def test_text_of_known_limits() -> None:
    text_of_it = "the list a holds 65535"
    notes = tuple(Note(Origin("rules", n), "nftables", "recent-capacity", text_of_it) for n in range(1, 12))
    other = Note(Origin("rules", 4), "tc-ebpf", "recent-capacity", "all lists hold 65536")
    one = dataclasses.replace(report(), notes=(*notes, other))
    assert text(one).splitlines()[1:3] == [
        "known limit: rules:1: nftables: the list a holds 65535 [recent-capacity]; "
        "the same for 10 more (lines 2, 3, 4, 5, 6, 7, 8, 9, …)",
        "known limit: rules:4: tc-ebpf: all lists hold 65536 [recent-capacity]",
    ]
    found = json.loads(parity_json(one))["notes"]
    assert [n["origin"]["line"] for n in found] == [*range(1, 12), 4]


def test_text_of_a_difference() -> None:
    shown = text(report(DIFFERENCE))
    for part in (
        "difference 1 of 1: nftables, flow case/dns (flows.jsonl:3)",
        "reply (step 1)",
        "expected    10.96.0.10",
        "observed    (nothing)",
        "decided by  rules:85: -A X -j DNAT",
        "              rules:9: -A Y -j ACCEPT",
        "replay      nfparity diff rules --only case/dns",
        "no parity: 1 difference in 1 of 10 flows",
    ):
        assert part in shown


def test_text_stays_readable_with_many() -> None:
    shown = text(report(*[DIFFERENCE] * 60))
    assert "and 10 more differences" in shown


def test_json() -> None:
    data = json.loads(parity_json(report(DIFFERENCE)))
    assert data["parity"] is False
    assert data["differences"][0]["observed"] is None
    assert data["differences"][0]["rules"][0] == "rules:85: -A X -j DNAT"
    assert data["backends"][1]["skipped"]
    assert json.loads(parity_json(report()))["parity"] is True


def test_junit_has_a_case_for_each_flow_and_backend_with_its_time() -> None:
    root = checked_junit(parity_junit(not_tested(report(DIFFERENCE)), times=True))
    suites = {s.get("name"): s for s in root}
    assert [len(suite) for suite in root] == [10, 10, 10, 10]
    nft = suites["nftables -O1"]
    assert (nft.get("tests"), nft.get("failures"), nft.get("time")) == ("10", "1", "1.250")
    failure = nft.find("testcase[@name='case/dns']/failure")
    assert failure is not None
    assert failure.text is not None
    assert "nfparity diff rules --only case/dns" in failure.text
    assert suites["tc-ebpf -O1"].get("skipped") == "10"
    assert suites["iptables-nft -O1"].get("errors") == "2"
    assert suites["gone -O1"].get("errors") == "10"
    assert checked_junit(parity_junit(report(), times=True))[0].get("failures") == "0"


def test_junit_without_times_is_the_same_whatever_took_how_long() -> None:
    slow = tuple(dataclasses.replace(case, seconds=9.0) for case in CASES)
    backend = dataclasses.replace(report().backends[0], cases=slow)
    other = dataclasses.replace(report(), backends=(backend, report().backends[1]))
    assert parity_junit(other, times=True) != parity_junit(report(), times=True)
    assert parity_junit(other, times=False) == parity_junit(report(), times=False)
    assert parity_json(other) == parity_json(report())
    checked_junit(parity_junit(other, times=False), times=False)


def test_junit_has_no_character_that_xml_has_not() -> None:
    odd = dataclasses.replace(DIFFERENCE, observed="\x1b \udcff \ufffe \x85 \U0001f600")
    root = checked_junit(parity_junit(report(odd), times=True))
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "observed ? ? ? ? \U0001f600" in (failure.text or "")


def test_sarif_stands_on_the_lines_of_the_rules() -> None:
    origins = (Origin("my rules", 85, 0, "-A X -j DNAT"), Origin("my rules", 9, 0, "-A Y -j ACCEPT"))
    placed = dataclasses.replace(DIFFERENCE, origins=origins)
    bare = dataclasses.replace(DIFFERENCE, field="note", step=None, rules_path="rules")
    run = checked_sarif(json.loads(parity_sarif(report(placed, bare), version="1.2.3")))
    first, second = run["results"]
    assert [one["physicalLocation"]["region"]["startLine"] for one in first["locations"]] == [85, 9]
    assert {one["physicalLocation"]["artifactLocation"]["uri"] for one in first["locations"]} == {
        "my%20rules"
    }
    assert (first["ruleId"], second["ruleId"]) == ("difference/address", "difference/note")
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert "nfparity diff rules --only case/dns" in first["message"]["text"]


def test_what_was_not_tested_is_told_in_every_form() -> None:
    one = not_tested(report())
    shown = text(one)
    assert "not tested: iptables-nft, gone; no difference in the tested part of 10 flows at -O1" in shown
    assert "8          0  2 not tested: cannot express the rules" in shown
    data = json.loads(parity_json(one))
    assert (data["result"], data["parity"]) == ("not tested", False)
    assert data["backends"][2]["untested"] == ["cannot express the rules: \x01"]
    run = checked_sarif(json.loads(parity_sarif(one, version="1.2.3")))
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    differing = not_tested(report(DIFFERENCE))
    assert "no parity: 1 difference in 1 of 10 flows at -O1" in text(differing)
    assert "; not tested: iptables-nft, gone" in text(differing)
    assert json.loads(parity_json(differing))["result"] == "differences"


def test_what_chance_decides_is_said_with_what_is_missed() -> None:
    told = "2 flows have random outcomes; in 6 runs, an outcome is missed with probability 1e-09 per flow"
    assert told in text(report())
    assert "random outcomes" not in text(dataclasses.replace(report(), chancy=0, repeated=0))
