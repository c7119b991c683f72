from __future__ import annotations

import dataclasses
import io
import json
from xml.etree import ElementTree

from harness.parity import BackendReport, Difference, ParityReport
from harness.report.jsonreport import parity_json
from harness.report.junit import parity_junit
from harness.report.text import print_parity
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


def report(*differences: Difference) -> ParityReport:
    return ParityReport(
        level=1,
        flows=10,
        repeated=4,
        share_tests=2,
        false_alarm_rate=1e-6,
        backends=(
            BackendReport(name="nftables", flows=10, differing=len({d.flow_id for d in differences})),
            BackendReport(name="tc-ebpf", skipped="no \x01 headers"),
        ),
        differences=differences,
        assumed=("interface eth0",),
    )


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
        "so 10 more (lines 2, 3, 4, 5, 6, 7, 8, 9, …)",
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
        "no parity: 1 differences in 1 of 10 flows",
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


def test_junit() -> None:
    root = ElementTree.fromstring(parity_junit(report(DIFFERENCE)))
    suites = {s.get("name"): s for s in root}
    nft = suites["nftables -O1"]
    assert (nft.get("tests"), nft.get("failures")) == ("10", "1")
    failure = nft.find("testcase/failure")
    assert failure is not None
    assert failure.text is not None
    assert "nfparity diff rules --only case/dns" in failure.text
    assert suites["tc-ebpf -O1"].find("testcase/skipped") is not None
    assert ElementTree.fromstring(parity_junit(report()))[0].get("failures") == "0"
