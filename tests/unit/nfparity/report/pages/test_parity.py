"""The page of a differential test."""

from __future__ import annotations

from dataclasses import replace

from backends.model.contract import Job
from harness.corpus.formats.jsonlines import read_flows
from harness.diff.batch import Batch
from harness.diff.result import BackendReport, Difference, ParityReport
from nfparity.report.pages.parity import parity_page
from tests.unit.nfparity.report.pages.helpers.hostile import HOSTILE
from tests.unit.nfparity.report.pages.helpers.markup import Element, checked_page
from translate.ir import Origin

FLOWS = (
    b'{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 1,'
    b' "dport": 53, "then": [{"reply": {}}]}\n'
    b'{"id": "direct", "in": "pod5", "src": "10.244.0.5", "dst": "10.244.0.3", "proto": "udp", "sport": 2,'
    b' "dport": 9}\n'
)
SHARE = Difference(
    backend="tc-ebpf",
    flow_id="dns",
    flow_source="",
    step=None,
    step_text="branch 1",
    field="share",
    expected=0.5,
    observed="less often, at p < 1e-9",
    rules=(),
    command="nfparity diff rules --only dns",
    rules_path="rules",
)
VERDICT = replace(
    SHARE, step=0, step_text="first packet", field="verdict", expected="forward", observed=HOSTILE, branch=0
)
SOURCE = replace(
    VERDICT, step=1, step_text="reply (step 1)", field="src", expected="10.96.0.10", observed=None
)
OTHER = replace(
    SOURCE,
    flow_id="direct",
    step=0,
    field="mark",
    expected=0,
    observed=1,
    origins=(Origin("rules", 7, 0, "-A X"),),
)


def page(worker: Job, *differences: Difference) -> Element:
    batch = Batch(
        rules_path="rules",
        rules=worker.ruleset,
        node=worker.node,
        flows=read_flows(FLOWS, name="f", node=worker.node),
        corpus="f",
    )
    flows = len({difference.flow_id for difference in differences})
    report = ParityReport(
        level=2, flows=2, chancy=1, repeated=0, miss=1e-9, left_open=0, open_rules=(), share_tests=2,
        false_alarm_rate=1e-6,
        backends=(
            BackendReport(name="tc-ebpf", flows=2, differing=flows),
            BackendReport(name="nftables", flows=1, untested=(f"cannot express {HOSTILE}",)),
            BackendReport(name="iptables-nft", skipped="no root"),
        ),
        differences=differences,
    )  # fmt: skip
    text = parity_page(report, (batch,), version="1")
    assert text == parity_page(report, (batch,), version="1")
    return checked_page(text)


def test_parity(worker: Job) -> None:
    root = page(worker)
    assert root.all("p", "verdict")[0].text.startswith("not tested: nftables; no difference")
    assert "iptables-nft: no root" in root.all("details", "notes")[1].text
    assert not root.all("details", "finding")


def test_the_differences_of_a_flow_are_one_finding_with_the_expected_path(worker: Job) -> None:
    root = page(worker, OTHER, VERDICT, SOURCE)
    (section,) = root.all("section", "group")
    assert "tc-ebpf 2 of 2 flows are different" in section.all("h2")[0].text
    first, second = section.all("details", "finding")
    assert (first.attributes["data-level"], second.attributes["data-level"]) == ("breaks", "changes")
    expected, observed = first.all("section", "side")
    assert any("-j DNAT" in hop.text for hop in expected.all("li", "decides"))
    assert "observed: verdict </script>" in observed.text
    assert first.all("p", "command")[0].text == "Reproduce: nfparity diff rules --only dns"
    assert second.all("ul", "lines")[0].text.strip() == "rules:7 -A X"


def test_the_path_of_a_reply_follows_that_of_its_packet(worker: Job) -> None:
    (finding,) = page(worker, SOURCE).all("details", "finding")
    titles = [title.text for title in finding.all("section", "side")[0].all("h4")]
    assert titles == ["First packet of the connection", "Through the rules"]


def test_an_unfair_share_has_no_path(worker: Job) -> None:
    (finding,) = page(worker, SHARE).all("details", "finding")
    assert finding.attributes["data-level"] == "doubt"
    assert not finding.all("ol", "path")
