from __future__ import annotations

import json
from pathlib import Path

from tests.lab.bench.figures import Cell, Figures
from tests.lab.bench.report import write_report


def figures() -> Figures:
    plain = Cell(subject="plain forwarding", services=10, load=[0.0], memory=[0.0], first=[1000.0, 2000.0])
    legacy = Cell(
        subject="iptables-legacy",
        services=10,
        load=[0.5],
        memory=[2048.0],
        change=[0.02],
        first=[2500.0, 4900.0],
        size=2048,
    )
    ours = Cell(
        subject="nfparity -O1",
        services=10,
        pure={"read": [0.1], "emit": [0.05]},
        load=[0.1],
        missing={"change": "a change is a new load", "first": "over 1 s"},
    )
    speeds = {"simulator, flows": {10: [3000.0]}}
    return Figures(machine={"kernel": "6"}, options={}, cells=[plain, legacy, ours], speeds=speeds)


def test_tables_have_medians_and_ratios_within_rounds(tmp_path: Path) -> None:
    write_report(figures(), tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| plain forwarding | 1,500 (x1) |" in text
    assert "| iptables-legacy | 3,700 (x2.48) |" in text
    assert "| nfparity -O1 | 0.25 (x0.5) |" in text, "the steps are added up, and compared with legacy's"
    assert "| iptables-legacy | 20.0 (x1) |" in text, "a change in milliseconds"
    assert "| nfparity -O1 | 0.1 | 0.05 | 0.1 |" in text
    assert "| simulator, flows | 3,000 |" in text


def test_what_is_missing_is_said_with_its_reason(tmp_path: Path) -> None:
    write_report(figures(), tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "- nfparity -O1, first, at 10 services: over 1 s" in text
    assert "- nfparity -O1, change, at 10 services: a change is a new load" in text


def test_every_plot_that_is_named_is_there_and_the_data_too(tmp_path: Path) -> None:
    write_report(figures(), tmp_path)
    named = [
        x.partition("](")[2].rstrip(")")
        for x in (tmp_path / "RESULTS.md").read_text().splitlines()
        if "![" in x
    ]
    assert len(named) == 6
    assert all((tmp_path / name).is_file() for name in named)
    assert json.loads((tmp_path / "results.json").read_text())["cells"][1]["size"] == 2048
