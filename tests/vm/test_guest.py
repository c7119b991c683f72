"""Starting a guest, with a program in virtme-run's place that does on the host what the guest would do."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import vm.guest
from translate.errors import MachineError
from vm.guest import Guest, command_line, run, script
from vm.kernel import Kernel

# What guest.sh does once the guest is up, without the mounts.
BEHAVES = """
echo 6.1 >$exchange/started
sh $exchange/command >$exchange/output 2>&1
echo $? >$exchange/status.part; mv $exchange/status.part $exchange/status
"""

type_of_machine = Callable[..., Guest]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type_of_machine:
    def make(body: str, *, limit: float = 30.0) -> Guest:
        exchange = tmp_path / "exchange"
        program = tmp_path / "virtme-run"
        program.write_text(f"#!/bin/sh\nexchange={exchange}\necho Linux version 6.1\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setattr(vm.guest, "_find_virtme_run", lambda: program)
        kernel = Kernel(series="6.1", version="6.1.0-56-amd64", root=tmp_path)
        return Guest(kernel=kernel, exchange=exchange, kvm=False, limit=limit)

    return make


def _run(guest: Guest, *command: str, boot_limit: float = 20.0) -> tuple[int, bytes]:
    got: list[bytes] = []
    status = run(guest, command, folder=guest.kernel.root, write=got.append, boot_limit=boot_limit)
    return status, b"".join(got)


@pytest.mark.parametrize("status", [0, 1, 3, 255])
def test_status_and_output_come_back(machine: type_of_machine, status: int) -> None:
    ended, said = _run(machine(BEHAVES), "sh", "-c", f"echo out; echo err >&2; exit {status}")
    assert (ended, said) == (status, b"out\nerr\n")


def test_the_status_is_the_command_s_whatever_virtme_run_ends_with(machine: type_of_machine) -> None:
    assert _run(machine(BEHAVES + "exit 255"), "true") == (0, b"")


def test_much_output_comes_whole(machine: type_of_machine) -> None:
    _, said = _run(machine(BEHAVES), "seq", "200000")
    assert said == b"".join(b"%d\n" % n for n in range(1, 200001))


def test_words_of_the_command_stay_words(machine: type_of_machine) -> None:
    words = ("printf", "%s|", "two words", "$HOME", "it's", '"', "a;b", "")
    assert _run(machine(BEHAVES), *words)[1] == b"two words|$HOME|it's|\"|a;b||"


def test_a_boot_that_fails_shows_the_console(machine: type_of_machine) -> None:
    with pytest.raises(
        MachineError, match=r"(?s)did not come up.*serial\.log.*Failed to mount real root"
    ) as caught:
        _run(machine("echo 'Failed to mount real root.  We are stuck.'; exit 1"), "true")
    assert "6.1.0-56-amd64, emulated" in str(caught.value)


def test_a_boot_that_hangs_is_given_up(machine: type_of_machine) -> None:
    with pytest.raises(MachineError, match="did not come up in 0 s"):
        _run(machine("sleep 60"), "true", boot_limit=0.4)


def test_a_guest_that_dies_is_not_a_result(machine: type_of_machine) -> None:
    with pytest.raises(MachineError, match="died after"):
        _run(machine("echo 6.1 >$exchange/started; echo 'Kernel panic'; exit 0"), "true")


def test_a_command_that_never_ends_is_ended(machine: type_of_machine) -> None:
    with pytest.raises(MachineError, match="did not end in 1 s"):
        _run(machine(BEHAVES, limit=1), "sleep", "60")


def test_nothing_is_left_running(machine: type_of_machine, tmp_path: Path) -> None:
    with pytest.raises(MachineError):
        _run(machine(f"sleep 60 & echo $! >{tmp_path}/pid; wait"), "true", boot_limit=0.6)
    pid = int((tmp_path / "pid").read_text())
    until = time.monotonic() + 5
    while time.monotonic() < until and _runs(pid):
        time.sleep(0.02)
    assert not _runs(pid)


def _runs(pid: int) -> bool:
    try:
        # Killed and not yet reaped by whoever adopted it is not running.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_run_starts_with_an_empty_exchange(machine: type_of_machine) -> None:
    assert _run(machine(BEHAVES), "false")[0] == 1
    with pytest.raises(MachineError):
        _run(machine("exit 0"), "false")


def test_kvm_is_used_only_when_it_works(machine: type_of_machine) -> None:
    slow = machine("")
    fast = Guest(kernel=slow.kernel, exchange=slow.exchange, kvm=True)
    assert "--disable-kvm" in command_line(slow)
    assert "--disable-kvm" not in command_line(fast)


def test_only_the_exchange_folder_is_writable(machine: type_of_machine) -> None:
    line = command_line(machine(""))
    assert "--rw" not in line
    assert [word for word in line if word.startswith("--rwdir")] == [f"--rwdir={machine('').exchange}"]


def test_the_guest_s_life_is_bounded_from_outside(machine: type_of_machine) -> None:
    assert command_line(machine("", limit=90))[:3] == ["timeout", "--kill-after=10", "90"]


def test_environment_is_quoted(tmp_path: Path) -> None:
    kernel = Kernel(series="6.1", version="6.1", root=tmp_path)
    guest = Guest(kernel=kernel, exchange=tmp_path, kvm=False, environment={"PLACE": "a b'c"})
    text = script(guest, ("sh", "-c", 'printf %s "$PLACE"'), folder=Path("/"))
    assert subprocess.run(["sh"], input=text, capture_output=True, text=True, check=True).stdout == "a b'c"


def test_guest_script_is_valid_shell() -> None:
    assert subprocess.run(["sh", "-n", str(vm.guest.GUEST_SCRIPT)], check=False).returncode == 0
    assert shlex.split(f"sh {shlex.quote(str(vm.guest.GUEST_SCRIPT))}")[1] == os.fspath(vm.guest.GUEST_SCRIPT)
