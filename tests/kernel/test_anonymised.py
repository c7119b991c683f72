"""An anonymised snapshot is told the same differences by the kernel as the original."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.corpus.formats.jsonlines import write_flows
from harness.corpus.random.flows import random_flows
from nfparity.capture.anonymise.mapping import Mapping
from nfparity.capture.anonymise.snapshot import anonymise
from nfparity.capture.files import write_files
from nfparity.cli import main
from nfparity.snapshot import load_snapshot
from tests.unit.nfparity.capture.anonymise.helpers.originals import RULESETS, Original, moved_flows
from translate.ir import Family

KUBE = {
    Family.IP: Original("kube-real/rules.iptables-save", "kube-real/node.json"),
    Family.IP6: Original("kube-real/rules.ip6tables-save", "kube-real/node6.json"),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", Family)
def test_the_same_packets_fare_differently_in_nftables_mode(
    family: Family, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listing = (RULESETS / "kube-real/realistic.nft.json").read_bytes()
    files = {**KUBE[family].files(), "nft.json": listing}
    made, mapping = anonymise(files, bytes(range(32)))
    for name, content in (("before", files), ("after", made)):
        write_files(str(tmp_path / name), content, now=0.0)
    before = load_snapshot(str(tmp_path / "before"))
    flows = tuple(random_flows(before.ruleset(family), before.node, count=300, seed=5))
    (tmp_path / "before.jsonl").write_text(write_flows(flows))
    (tmp_path / "after.jsonl").write_text(moved_flows(flows, mapping))
    found = []
    for name in ("before", "after"):
        path = str(tmp_path / name)
        words = ["diff", path, "--family", family.value, "--corpus", f"{path}.jsonl", "--format", "json"]
        assert main([*words, "--against", f"{path}/nft.json"]) == 1
        report = json.loads(capsys.readouterr().out)
        found.append({one["flow_id"] for one in report["differences"]})
    assert found[0]
    assert found[0] == found[1]


@pytest.mark.slow
def test_an_assessment_finds_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = KUBE[Family.IP].files()
    made, mapping = anonymise(files, bytes(range(32)))
    reports = []
    for name, content in (("before", files), ("after", made)):
        write_files(str(tmp_path / name), content, now=0.0)
        words = ["assess", str(tmp_path / name), "--family", "ip", "--known-only", "--format", "json"]
        assert main(words) == 1
        (family,) = json.loads(capsys.readouterr().out)["families"]
        reports.append(family)
    before, after = reports
    assert findings(before, mapping) == findings(after, None)
    assert [one["kind"] for one in before["leaks"]] == [one["kind"] for one in after["leaks"]]
    assert {one["id"] for one in before["findings"]} == {one["id"] for one in after["findings"]}


def findings(report: Any, mapping: Mapping | None) -> set[tuple[str, str]]:
    """Return the findings, by service."""
    found = set()
    for one in report["findings"]:
        subject = one["affects"]
        if mapping is not None:
            subject = re.sub(r"[\w-]+/[\w-]+:[\w-]+", lambda m: mapping.service(m.group(0)), subject)
            subject = mapping.text_addresses(subject)
        found.add((one["id"], subject))
    return found
