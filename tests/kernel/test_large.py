"""A thousand services, each used from every place, through the flat translation and through iptables.

``make diff-test-large`` takes ten thousand, all backends and levels.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.kernel.helpers.reports import report_text
from tests.lab.examples import examples
from tests.lab.large import Expected, Subject, large_shape, large_subject, run_one
from translate.ir import Family

SERVICES = examples(1000)


@pytest.fixture(scope="module", params=[Family.IP, pytest.param(Family.IP6, marks=pytest.mark.slow)])
def asked(request: pytest.FixtureRequest) -> tuple[Subject, Expected]:
    subject = large_subject(large_shape(SERVICES, request.param))
    return subject, Expected.ask(subject.batch)


@pytest.mark.parametrize(
    ("name", "level"), [pytest.param("iptables-legacy", 0, marks=pytest.mark.slow), ("nftables", 2)]
)
def test_parity(asked: tuple[Subject, Expected], name: str, level: int) -> None:
    subject, expected = asked
    carrier = backend(name)
    require(carrier)
    report = run_one(subject, expected, carrier, level)
    assert report.parity, report_text(report)
    (mine,) = report.backends
    assert (mine.flows, mine.skipped) == (len(subject.batch.flows), None)
    assert mine.flows > 3 * SERVICES


def test_the_command_says_what_took_how_long() -> None:
    words = ["--services", "10", "--families", "ip", "--backends", "iptables-legacy,nftables"]
    words += ["--levels", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.large", *words],
        capture_output=True,
        check=False,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.returncode == 0, done.stderr
    for part in ("flows made", "simulator", "iptables-legacy -O0: 0 of ", "nftables -O2: 0 of "):
        assert part in done.stdout


@pytest.mark.parametrize(
    "words",
    [["--families", "ipx"], ["--levels", "two"], ["--backends", "tables"], ["--services", "-1"]],
)
def test_what_cannot_be_asked_for_is_said(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.lab.large", *words],
        capture_output=True,
        check=False,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert words[1] in done.stderr
