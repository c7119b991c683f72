"""Files that must not be spoiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nfparity.persistent_state.disk import prepare_folder, read_content, write_durably
from translate.errors import MachineError


def test_a_file_is_written_whole_over_another(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert read_content(path) is None
    (tmp_path / "file.new").symlink_to("/dev/full")  # left behind by somebody
    write_durably(path, b"one")
    write_durably(path, b"two")
    content = read_content(path)
    assert content is not None
    assert (content.data, content.doubt) == (b"two", None)
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["file"]


def test_a_folder_that_others_can_write_to(tmp_path: Path) -> None:
    folder = tmp_path / "a/b"
    prepare_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o770)
    with pytest.raises(MachineError, match="other users can write to"):
        prepare_folder(folder)
    write_durably(folder / "file", b"x")
    content = read_content(folder / "file")
    assert content is not None
    assert content.doubt == f"users other than root can write to {folder}"


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "huge"])
def test_what_is_no_file_is_not_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file"
    match kind:
        case "folder":
            path.mkdir()
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "huge":
            path.touch()
            os.truncate(path, 1 << 40)
    with pytest.raises(MachineError, match="cannot read"):
        read_content(path)
