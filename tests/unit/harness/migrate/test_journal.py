from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from harness.migrate.journal import Journal, read_journal
from harness.migrate.place import Place
from harness.migrate.record import Phase, Record
from translate.errors import MachineError

RECORD = Record(
    phase=Phase.APPLIED,
    identity="one",
    boot="b",
    namespace="1 2",
    plan="d",
    since="s",
    deadline=5.5,
    removed=("a",),
)


def test_a_step_stands_between_its_lines(tmp_path: Path) -> None:
    points: list[str] = []
    journal = Journal(tmp_path / "state/journal", points.append)
    journal.begin_anew()
    journal.step("load ip", lambda: points.append("acted"))
    assert points == ["begun load ip", "acted", "made load ip", "done load ip"]
    assert read_journal(tmp_path / "state/journal") == ("begin load ip", "done load ip")


def test_a_step_that_fails_is_begun_and_not_done(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")

    def fail() -> None:
        raise MachineError("no")

    with pytest.raises(MachineError):
        journal.step("load ip", fail)
    assert read_journal(tmp_path / "journal") == ("begin load ip",)


def test_a_line_that_was_cut_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    Journal(path).step("load ip", lambda: None)
    path.write_text(path.read_text()[:-10])
    assert read_journal(path) == ("begin load ip",)
    assert read_journal(tmp_path / "none") == ()


def test_beginning_anew_forgets(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.step("load ip", lambda: None)
    journal.begin_anew()
    assert read_journal(tmp_path / "journal") == ()


def test_a_record_comes_back_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "state/record.json"
    assert Record.read(path) is None
    RECORD.write(path)
    assert Record.read(path) == RECORD
    RECORD.at(Phase.CONFIRMED).write(path)
    assert Record.read(path) == dataclasses.replace(RECORD, phase=Phase.CONFIRMED)
    assert [file.name for file in path.parent.iterdir()] == ["record.json"]


@pytest.mark.parametrize(
    ("boot", "namespace", "lasting", "ours", "forgotten"),
    [
        ("b", "1 2", False, True, False),
        ("b", "1 3", True, False, False),  # another one has the inode now
        ("c", "1 2", False, False, True),
        ("c", "1 2", True, True, True),
        ("c", "1 3", True, True, True),
    ],
)
def test_a_record_is_of_a_namespace(
    tmp_path: Path, boot: str, namespace: str, lasting: bool, ours: bool, forgotten: bool
) -> None:
    place = Place(folder=tmp_path, boot=boot, namespace=namespace, lasting=lasting)
    assert (RECORD.is_of(place), RECORD.is_forgotten(place)) == (ours, forgotten)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"phase": "gone", "removed": []}'])
def test_what_is_no_record(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(MachineError, match="is not a record of a migration"):
        Record.read(tmp_path / "record.json")
