"""A child that reads what comes from outside may take so much and no more."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable

import pytest

from backends.replay import limits


def status_of(action: Callable[[], object]) -> int:
    """Fork, do it within bounds, and return how the child ended."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            with limits.bounded(0):
                action()
            code = 0
        except MemoryError:
            code = 10
        except OSError as e:
            code = 20 + (e.errno or 0)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def loop() -> None:
    while True:
        pass


def open_many() -> None:
    for _ in range(1000):
        os.open("/dev/null", os.O_RDONLY)


def test_what_exceeds_its_bounds_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_SECONDS", 1)
    assert status_of(lambda: None) == 0
    monkeypatch.setattr(limits, "_PATIENCE", 1000)  # this process may have to wait for its second
    assert status_of(loop) == -signal.SIGXCPU
    monkeypatch.setattr(limits, "_PATIENCE", 1)
    assert status_of(lambda: time.sleep(60)) == -signal.SIGALRM
    monkeypatch.undo()
    assert status_of(open_many) == 20 + 24  # EMFILE
    assert status_of(lambda: [bytes(1 << 30) for _ in range(4)] and None) == 10


def test_all_is_as_before_afterwards() -> None:
    kinds = (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CORE)
    before = [resource.getrlimit(kind) for kind in kinds], signal.getsignal(signal.SIGALRM)
    with limits.bounded(1000):
        assert resource.getrlimit(resource.RLIMIT_NOFILE) != before[0][2]
    assert before == ([resource.getrlimit(kind) for kind in kinds], signal.getsignal(signal.SIGALRM))
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_deaths_are_told_apart() -> None:
    assert "processor time" in (limits.death_by(-signal.SIGXCPU) or "")
    assert "waited" in (limits.death_by(-signal.SIGALRM) or "")
    assert limits.death_by(-signal.SIGSEGV) is None
    assert limits.death_by(0) is None
    assert limits.death_by(None) is None
