"""Output on terminals is printable, write errors are reported, and files appear as a whole."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.files.errors import CaptureError
from harness.files.output import Output, printable
from harness.files.wholefiles import new_folder, write_file

TERMINAL = [
    chr(c) for c in (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x202E, 0x2066, 0x2028, 0x2029, 0xFEFF)
]


@given(
    st.text() | st.text(st.sampled_from(TERMINAL)),
    st.sampled_from([None, "utf-8", "ascii", "latin-1", "cp437"]),
)
def test_nothing_is_shown_that_a_terminal_obeys(text: str, encoding: str | None) -> None:
    shown = printable(text, encoding)
    assert all(c in "\n\t" or c.isprintable() for c in shown)
    shown.encode(encoding or "utf-8")
    if all(c in "\n\t" or c.isprintable() for c in text) and encoding is None:
        assert shown == text


@given(st.text(), st.sampled_from([None, "ascii"]))
def test_json_still_says_the_same(text: str, encoding: str | None) -> None:
    whole = json.dumps({"a": text}, ensure_ascii=False)
    assert json.loads(printable(whole, encoding)) == json.loads(json.dumps({"a": text}))


class _Failing(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def write(self, text: str) -> int:
        raise self.error


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), ValueError("closed file")]
)
def test_a_fault_of_a_stream(error: Exception) -> None:
    with pytest.raises(CaptureError, match="standard output cannot be written") as caught:
        print("x", file=Output(_Failing(error), "standard output", needed=True))
    assert caught.value.status == 3
    print("x", file=Output(_Failing(error), "standard error", needed=False))
    with pytest.raises(CaptureError, match="closed"):
        print("x", file=Output(None, "standard output", needed=True))
    with pytest.raises(BrokenPipeError):
        print("x", file=Output(_Failing(BrokenPipeError()), "standard output", needed=True))


def test_the_stream_belongs_to_its_owner(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as file:
        output = Output(file, "standard output", needed=True)
        output.close()
        assert output.write("a") == 1
    output.close()  # as Python does when the object is dropped
    assert (tmp_path / "out").read_text() == "a"


def test_exact_bytes_are_for_files_alone(tmp_path: Path) -> None:
    data = b"\x1b[2J \xff \xe2\x80\xae"
    with (tmp_path / "out").open("w+", encoding="ascii") as file:
        output = Output(file, "standard output", needed=True)
        output.write("a\u2026")
        output.write_exactly(data)
        output.flush()
    assert (tmp_path / "out").read_bytes() == b"a\\u2026" + data
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        Output(terminal, "standard output", needed=True).write_exactly(data)
        terminal.flush()
        assert os.read(ours, 100) == b"\\u001b[2J \\udcff \\u202e"
    os.close(ours)


def names(folder: Path) -> set[str]:
    return {one.name for one in folder.iterdir()}


def test_a_file_keeps_what_it_is_and_gets_another_content(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to("real")
    write_file(str(link), b"new")
    assert (real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (b"new", 0o640)
    assert link.is_symlink()
    before = os.umask(0o027)
    try:
        write_file(str(tmp_path / "fresh"), b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o640
    assert names(tmp_path) == {"real", "link", "fresh"}


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize("at", ["fsync", "replace"])
def test_what_fails_half_way_leaves_the_old_file(
    there: bool, error: BaseException, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if there:
        path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(f"harness.files.wholefiles.os.{at}", fail)
    with pytest.raises(type(error)):
        write_file(str(path), b"new")
    assert names(tmp_path) == ({"file"} if there else set())
    assert not there or path.read_bytes() == b"old"


def test_a_file_in_a_folder_that_takes_no_other_is_written_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"older")

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr("harness.files.wholefiles.os.replace", busy)
    write_file(str(path), b"new")
    assert path.read_bytes() == b"new"
    with pytest.raises(OSError, match="busy"):
        write_file(str(tmp_path / "fresh"), b"new")
    assert names(tmp_path) == {"file"}


def test_what_is_no_regular_file_is_written_to_as_it_is(tmp_path: Path) -> None:
    fifo, read = tmp_path / "fifo", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    write_file(str(fifo), b"through")
    reader.join(10)
    assert read == [b"through"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    with pytest.raises(OSError, match="No space left"):
        write_file("/dev/full", b"x")
    with pytest.raises(IsADirectoryError):
        write_file(str(tmp_path), b"x")


def test_a_descriptor_goes_on_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("ab", buffering=0) as file:
        file.write(b"before ")
        write_file(f"/proc/self/fd/{file.fileno()}", b"and after")
        file.write(b" and on")
    assert path.read_bytes() == b"before and after and on"
    assert names(tmp_path) == {"file"}


@pytest.mark.parametrize("fail", [True, False])
def test_a_folder_is_there_as_a_whole(fail: bool, tmp_path: Path) -> None:
    def fill(make: Callable[[], None]) -> None:
        with new_folder(str(tmp_path / "folder")) as made:
            (made / "a").write_bytes(b"1")
            assert names(tmp_path) == {made.name}
            make()

    def broken() -> None:
        raise OSError(errno.ENOSPC, "full")

    if fail:
        with pytest.raises(OSError, match="full"):
            fill(broken)
        assert names(tmp_path) == set()
    else:
        fill(lambda: None)
        assert names(tmp_path / "folder") == {"a"}
        with pytest.raises(FileExistsError):
            fill(lambda: None)
