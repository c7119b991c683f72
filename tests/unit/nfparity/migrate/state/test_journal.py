from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from nfparity.migrate.state.journal import Journal, Steps
from nfparity.migrate.state.place import MigrationPlace
from nfparity.migrate.state.record import Phase, Record, Saved
from nfparity.persistent_state.reservedlog import ReservedLog
from nfparity.snapshot import Variant
from translate.errors import MachineError
from translate.ir import Family

RECORD = Record(
    phase=Phase.APPLIED,
    identity="one",
    machine="m",
    boot="b",
    namespace="1 2",
    plan="d",
    since="s",
    deadline=5.5,
    saved={Family.IP: Saved(Variant.NFT, "abc")},
    removed=("a",),
)


OLDER = {
    "phase": "confirmed",
    "identity": "one",
    "boot": "b",
    "namespace": "1 2",
    "plan": "d",
    "since": "s",
    "deadline": 5.5,
    "removed": ["a"],
}


@pytest.fixture
def log(tmp_path: Path) -> ReservedLog:
    return ReservedLog(tmp_path / "journal")


def test_a_step_stands_between_its_lines(log: ReservedLog) -> None:
    points: list[str] = []
    journal = Journal(log, points.append)
    journal.begin_anew()
    size = log.path.stat().st_size
    assert journal.steps() == Steps((), whole=False)
    journal.step("load ip", lambda: points.append("acted"))
    assert points == ["begun load ip", "acted", "made load ip", "done load ip"]
    assert journal.steps() == Steps(("begin load ip", "done load ip"), whole=True)
    assert "done load ip" in journal.steps()
    assert log.path.stat().st_size == size
    journal.begin_anew()
    assert journal.steps().lines == ()


def test_a_step_that_fails_is_begun_and_not_done(log: ReservedLog) -> None:
    journal = Journal(log)
    journal.begin_anew()

    def fail() -> None:
        raise MachineError("no")

    with pytest.raises(MachineError):
        journal.step("load ip", fail)
    assert journal.steps().lines == ("begin load ip",)


def test_what_cannot_be_written_stops_the_way_forward_alone(log: ReservedLog) -> None:
    """There is no file."""
    journal = Journal(log)
    acted: list[str] = []
    with pytest.raises(MachineError, match="cannot write"):
        journal.step("load ip", lambda: acted.append("load"))
    assert acted == []
    journal.turn_back()
    journal.step("delete ip", lambda: acted.append("delete"))
    assert acted == ["delete"]
    assert journal.complaint is not None
    assert "cannot write" in journal.complaint


@pytest.mark.parametrize(
    "damage",
    [lambda data: data.replace(b'"done"', b'"do'), lambda data: b"\xff" + data, lambda data: b"[]\n" + data],
)
def test_of_a_damaged_journal_what_can_be_read_counts(log: ReservedLog, damage: object) -> None:
    journal = Journal(log)
    journal.begin_anew()
    journal.step("load ip", lambda: None)
    assert callable(damage)
    log.path.write_bytes(damage(log.path.read_bytes()))
    steps = journal.steps()
    assert not steps.whole
    assert set(steps.lines) < {"begin load ip", "done load ip"} or steps.lines[0] == "begin load ip"


def test_a_record_comes_back_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert Record.read(path) is None
    RECORD.write(path)
    assert Record.read(path) == RECORD
    RECORD.at(Phase.CONFIRMED).write(path)
    assert Record.read(path) == dataclasses.replace(RECORD, phase=Phase.CONFIRMED)
    assert [file.name for file in path.parent.iterdir()] == ["record.json"]


def test_a_record_of_an_older_version(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps(OLDER))
    assert Record.read(path) == dataclasses.replace(RECORD, phase=Phase.CONFIRMED, machine="", saved={})


@pytest.mark.parametrize(
    ("machine", "boot", "namespace", "lasting", "ours", "forgotten"),
    [
        ("m", "b", "1 2", False, True, False),
        ("m", "b", "1 3", True, False, False),  # another one has the inode now
        ("m", "c", "1 2", False, False, True),
        ("m", "c", "1 2", True, True, True),
        ("m", "c", "1 3", True, True, True),
        ("n", "c", "1 2", True, False, True),  # a copy of another machine's disk
        ("", "c", "1 2", True, True, True),
    ],
)
def test_a_record_is_of_a_namespace(
    tmp_path: Path, machine: str, boot: str, namespace: str, lasting: bool, ours: bool, forgotten: bool
) -> None:
    place = MigrationPlace(folder=tmp_path, machine=machine, boot=boot, namespace=namespace, lasting=lasting)
    assert (RECORD.is_of(place), RECORD.is_forgotten(place)) == (ours, forgotten)


@pytest.mark.parametrize(
    "change", [{"phase": "gone"}, {"since": 7}, {"deadline": "soon"}, {"saved": {"ip": []}}, {"more": 1}]
)
def test_what_is_no_record(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "record.json").write_text(json.dumps({**OLDER, **change}))
    with pytest.raises(MachineError, match="is not a record of a migration"):
        Record.read(tmp_path / "record.json")
