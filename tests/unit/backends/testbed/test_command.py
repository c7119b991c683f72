"""Running tools."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from backends.testbed import command
from backends.testbed.command import run


def test_what_a_tool_reads_and_prints_is_not_changed() -> None:
    """Neither ends of lines nor bytes that are not UTF-8: both can stand in a rule's comment."""
    text = "a\rb\r\nc\fd\u2028e\udcff\n"
    done = run(("cat",), text)
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")
    assert run(("sh", "-c", "printf 'x\\ry' >&2; exit 3")).stderr == "x\ry"


@pytest.fixture(params=["setpriv", "without setpriv", "BusyBox's setpriv"])
def _each_way(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "setpriv":
        if not command._setpriv():
            pytest.skip("setpriv is not installed (Debian package util-linux)")
        return
    if request.param == "BusyBox's setpriv":
        (tmp_path / "busybox").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "busybox").chmod(0o755)
        (tmp_path / "setpriv").symlink_to("busybox")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    if request.param == "without setpriv":
        found = command.find_tool
        monkeypatch.setattr(command, "find_tool", lambda name: None if name == "setpriv" else found(name))


@pytest.mark.usefixtures("_each_way")
def test_a_tool_ends_with_the_process_that_runs_it() -> None:
    """It keeps a pipe open, which ends when it is killed."""
    reads, writes = os.pipe()
    os.set_inheritable(writes, True)
    child = os.fork()
    if not child:
        run(("sh", "-c", f"echo started >/proc/self/fd/{writes}; exec sleep 100"), inherit=True)
        os._exit(1)
    os.close(writes)
    assert os.read(reads, 100) == b"started\n"
    os.kill(child, signal.SIGKILL)
    assert os.read(reads, 100) == b""
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    os.close(reads)


@pytest.mark.usefixtures("_each_way")
def test_options_of_a_tool_are_its_own() -> None:
    done = run(("printf", "%s", "--pdeathsig"))
    assert (done.stdout, done.args[1:]) == ("--pdeathsig", ("%s", "--pdeathsig"))
    assert run(("sh", "-c", "exit 127")).returncode == 127
