"""``--report``: one run, and its report in several formats."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import harness.diff.backends
from backends.simulator import SimulatorBackend
from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import entry
from nfparity.cli.main import main
from tests.unit.harness.report.helpers.formats import checked_junit, checked_sarif

CORPUS = Path(__file__).resolve().parents[3] / "corpus"
RULES = str(CORPUS / "rulesets/kube-real/rules.iptables-save")
CASE = str(CORPUS / "cases/protocol-implied")
FORMATS = {"txt": "text", "json": "json", "sarif": "sarif", "xml": "junit", "html": "html"}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A finding without packets, and a list that grows with each assessment."""
    started: list[str] = []
    fact = Finding(entry=entry("K31"), subject="eth0\x1b[31m", description="a fact")

    def assess(facts, **_):
        started.append("run")
        return Assessment(facts=facts, findings=(fact,))

    monkeypatch.setattr("nfparity.assess.snapshots._probe", lambda *_, **__: None)
    monkeypatch.setattr("nfparity.assess.snapshots.assess", assess)
    return started


def test_each_file_is_what_format_prints(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["assess", RULES, "--known-only", "--no-times"]
    words = [word for end in FORMATS for word in ("--report", str(tmp_path / f"r.{end}"))]
    assert main([*command, *words]) == 1
    assert runs == ["run"]
    capsys.readouterr()
    for end, form in FORMATS.items():
        assert main([*command, "--format", form]) == 1
        printed = capsys.readouterr().out
        assert printed
        assert (tmp_path / f"r.{end}").read_text() == printed, form


def test_files_come_with_any_format_on_standard_output(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "r.xml"
    assert main(["assess", RULES, "--known-only", "--format", "json", "--report", str(target)]) == 1
    assert json.loads(capsys.readouterr().out)
    assert ET.parse(target).getroot().tag == "testsuites"


class Again(SimulatorBackend):
    """The simulator, as a backend to compare with it."""

    name = "again"


def test_reports_of_diff(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    backends = {"simulator": SimulatorBackend, "again": Again}
    monkeypatch.setattr(harness.diff.backends, "BACKENDS", backends)
    monkeypatch.setattr("nfparity.cli.diff.BACKENDS", backends)
    words = [word for end in FORMATS for word in ("--report", str(tmp_path / f"r.{end}"))]
    assert main(["diff", "--corpus", CASE, *words]) == 0
    assert (tmp_path / "r.txt").read_text() == capsys.readouterr().out
    assert json.loads((tmp_path / "r.json").read_text())["backends"]
    checked_sarif(json.loads((tmp_path / "r.sarif").read_text()))
    checked_junit((tmp_path / "r.xml").read_text())
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["report", "report.pdf", "report.html.gz"])
def test_an_ending_without_a_format(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["assess", RULES, "--report", name])
    assert ended.value.code == 2
    assert f"'{name}' does not end with one of .txt, .json, .sarif, .xml, .html" in capsys.readouterr().err


def test_a_missing_folder_is_an_error_before_the_run(
    runs: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["assess", RULES, "--report", str(tmp_path / "none/r.html")]) == 2
    assert "its folder does not exist" in capsys.readouterr().err
    assert runs == []


def test_formats_of_one_snapshot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["assess", RULES, RULES, "--report", str(tmp_path / "r.sarif")]) == 2
    assert "r.sarif is for one snapshot; use json or html for several" in capsys.readouterr().err
