"""Answers of a worker: never an exception, and no larger than necessary."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from backends.model.contract import Availability
from nfparity.assess.fleet import job
from nfparity.assess.fleet.job import answer
from nfparity.assess.snapshots import AssessOptions
from translate.errors import MachineError

REAL = Path(__file__).resolve().parents[4] / "corpus/rulesets/kube-real/rules.iptables-save"


class Unable:
    name = "iptables-legacy"

    def probe(self) -> Availability:
        return Availability(ok=False, reason="it needs root")


def test_a_snapshot_that_cannot_be_read_is_bad_for_good(tmp_path: Path) -> None:
    path = tmp_path / "cut.tar.gz"
    path.write_bytes(b"\x1f\x8b\x08")
    for one in (str(path), str(tmp_path / "missing")):
        got = answer(AssessOptions(), one)
        assert got.failure is not None
        assert (got.failure.status, got.failure.again) == (2, False)
        assert one in got.failure.reason


def test_what_the_machine_lacks_may_be_there_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfparity.assess.snapshots.iptables_backend", Unable)
    monkeypatch.setattr(job, "_ABLE", set())
    got = answer(AssessOptions(), str(REAL))
    assert got.failure is not None
    assert (got.failure.status, got.failure.again) == (3, True)
    assert "it needs root" in got.failure.reason


@pytest.mark.parametrize(
    ("error", "status", "again"),
    [(MachineError("no"), 3, True), (MemoryError(), 3, True), (ZeroDivisionError("of ours"), 1, False)],
)
def test_no_exception_leaves_it(
    error: Exception, status: int, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str) -> None:
        raise error

    monkeypatch.setattr(job, "load_snapshot", fail)
    got = answer(AssessOptions(), "node")
    assert got.failure is not None
    assert (got.path, got.failure.status, got.failure.again) == ("node", status, again)


def test_it_is_sent_to_other_processes(tmp_path: Path) -> None:
    got = answer(AssessOptions(), os.devnull)
    assert pickle.loads(pickle.dumps(got)) == got
    options = AssessOptions(version=(1, 30), only=("a",))
    assert pickle.loads(pickle.dumps(options)) == options


class Counting(Unable):
    """Says how often it was asked, and that it can run."""

    asked = 0

    def probe(self) -> Availability:
        Counting.asked += 1
        return Availability(ok=True)


def test_a_process_probes_its_machine_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfparity.assess.snapshots.iptables_backend", Counting)
    monkeypatch.setattr(
        "nfparity.assess.snapshots.NftablesModeBackend.probe", lambda after: Counting().probe()
    )
    monkeypatch.setattr("nfparity.assess.snapshots.assess", lambda *words, **more: 1 / 0)
    monkeypatch.setattr(job, "_ABLE", set())
    for _ in range(3):
        got = answer(AssessOptions(corpus=False), str(REAL))
        assert got.failure is not None
        assert "ZeroDivisionError" in got.failure.reason
    assert Counting.asked == 2
