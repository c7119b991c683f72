"""The record of a dataplane on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfparity.tc.record import Phase, Record, Source
from translate.errors import MachineError

SOURCE = Source(rules="rules", digest="aa", level=2, text="bb", layout={"conns": "cc"}, lists=False)
RECORD = Record(
    phase=Phase.REPLACING,
    cookie=1 << 40,
    source=SOURCE,
    since="2026-01-02T03:04:05+00:00",
    generation=3,
    previous=2,
    replaced=SOURCE,
    sysctls={("all", "rp_filter"): "1", ("eth0.1", "accept_local"): "0"},
    rooms=(1, 7),
)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "ip.json"
    assert Record.read(path) is None
    RECORD.write(path)
    assert Record.read(path) == RECORD
    loaded = RECORD.at(Phase.LOADED, previous=None, replaced=None)
    loaded.write(path)
    assert Record.read(path) == loaded
    assert [p.name for p in path.parent.iterdir()] == ["ip.json"]


@pytest.mark.parametrize("text", ["{}", '{"phase": "gone"}', '{"phase": "loaded", "source": []}'])
def test_what_is_no_record_is_said(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ip.json"
    path.write_text(text)
    with pytest.raises(MachineError, match="is not a record of a dataplane"):
        Record.read(path)


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="cannot make"):
        RECORD.write(tmp_path / "file" / "ip.json")
