"""Signals end programs that may be interrupted, and no others."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from nfparity.kubectl.interruption import Interruption, SignalError

_COUNT = "echo begun >{fifo}; i=0; while [ $i -lt {rounds} ]; do sleep 0.01; i=$((i + 1)); done; echo done"


def begun(tmp_path: Path, number: int) -> str:
    """A FIFO whose writer makes this process receive a signal."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    def wait() -> None:
        assert fifo.read_text() == "begun\n"
        os.kill(os.getpid(), number)

    threading.Thread(target=wait).start()
    return str(fifo)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_may_be_interrupted_ends(number: int, tmp_path: Path) -> None:
    with Interruption() as interruption:
        script = _COUNT.format(fifo=begun(tmp_path, number), rounds=100_000)
        with pytest.raises(SignalError):
            interruption.run(["sh", "-c", script], interruptible=True)
        assert interruption.number == number
        with pytest.raises(SignalError):
            interruption.wait(60)
        with pytest.raises(SignalError):
            interruption.run(["true"], interruptible=True)


def test_what_may_not_be_interrupted_goes_on(tmp_path: Path) -> None:
    """It is in another session, so that signals of the terminal do not reach it."""
    with Interruption() as interruption:
        script = _COUNT.format(fifo=begun(tmp_path, signal.SIGINT), rounds=20)
        done = interruption.run(["sh", "-c", f"cut -d ' ' -f 6 /proc/$$/stat; {script}"], interruptible=False)
        session, end = done.out.split()
        assert (done.status, end) == (0, b"done")
        assert int(session) != os.getsid(0)
        with pytest.raises(SignalError):
            interruption.check()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_session_starts_the_program_again(number: int, tmp_path: Path) -> None:
    """The process dies between its fork and setsid: no program has run."""
    script = f"test -e {tmp_path}/begun || {{ echo >{tmp_path}/begun; kill -{number} $$; }}; echo done"
    with Interruption() as interruption:
        done = interruption.run(["sh", "-c", script], interruptible=False)
    assert (done.status, done.out) == (0, b"done\n")


def test_a_program_that_dies_of_another_signal_is_not_started_again(tmp_path: Path) -> None:
    with Interruption() as interruption:
        done = interruption.run(["sh", "-c", f"echo >>{tmp_path}/begun; kill -9 $$"], interruptible=False)
    assert (done.status, (tmp_path / "begun").read_text()) == (-signal.SIGKILL, "\n")


def test_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_output_and_status() -> None:
    with Interruption() as interruption:
        done = interruption.run(["sh", "-c", "cat; echo no >&2; exit 3"], b"in", interruptible=True)
    assert (done.status, done.out, done.err) == (3, b"in", "no")
    with Interruption() as interruption, pytest.raises(FileNotFoundError):
        interruption.run(["no-such-program"], interruptible=True)
