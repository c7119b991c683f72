from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lab.bench.figures import Cell, Figures
from tests.lab.bench.report import write_report
from tests.lab.bench.targets import AT, outcomes


def figures(services: int = AT) -> Figures:
    plain = Cell(subject="plain forwarding", services=services, first=[1000.0])
    legacy = Cell(subject="iptables-legacy", services=services, load=[2.0])
    ours = Cell(
        subject="nfparity -O2",
        services=services,
        pure={"read": [0.5]},
        load=[0.5],
        memory=[10 * 1024.0],
        change=[0.0008],
        first=[2000.0],
        established=[1500.0],
    )
    offloading = Cell(subject="nfparity -O2, flowtable", services=services, established=[900.0])
    speeds = {
        "simulator, flows": {services: [12_000.0]},
        "replay through nftables, flows": {services: [9_000.0]},
    }
    wide = [replace(legacy), replace(ours)]
    return Figures(machine={}, options={}, cells=[plain, legacy, ours, offloading], wide=wide, speeds=speeds)


def test_every_measured_target_has_its_result() -> None:
    results = {o.name: (o.value, o.reached) for o in outcomes(figures())}
    assert results == {
        "end to end, relative to iptables-legacy": (0.5, True),
        "load through libnftables": (0.5, True),
        "end to end with five endpoints per service, relative to iptables-legacy": (0.5, True),
        "endpoints of one service change": (pytest.approx(0.8), True),
        "kernel memory": (10.0, False),
        "first packet through nftables, relative to plain forwarding": (2.0, True),
        "established packet through a flowtable, relative to nftables": (0.6, True),
        "simulator": (12_000.0, True),
        "replay": (9_000.0, False),
    }


def test_growth_of_a_ratio_begins_at_the_smallest_size() -> None:
    run = figures()
    run.cells += [
        Cell(subject="plain forwarding", services=10, first=[500.0]),
        Cell(subject="nfparity -O2", services=10, first=[800.0]),
    ]
    growth = [o for o in outcomes(run) if "growth" in o.name]
    assert [(o.value, o.reached) for o in growth] == [(1.25, False)]


def test_other_sizes_have_no_targets(tmp_path: Path) -> None:
    assert not list(outcomes(figures(1000)))
    write_report(figures(1000), tmp_path)
    assert "Targets" not in (tmp_path / "RESULTS.md").read_text()


def test_a_miss_links_to_its_profile(tmp_path: Path) -> None:
    (tmp_path / "missed").mkdir()
    (tmp_path / "missed/memory.md").write_text("### Kernel memory\n")
    write_report(figures(), tmp_path)
    text = (tmp_path / "RESULTS.md").read_text()
    assert "| kernel memory | at most 8 MiB | 10.0 MiB | missed: [profile](missed/memory.md) |" in text
    assert "| replay | at least 50,000 flows/s | 9,000 flows/s | missed |" in text
    assert "| end to end, relative to iptables-legacy | at most 1 x | 0.5 x | reached |" in text
