"""The server that forks workers: what they get from their parent, and how they and it end."""

from __future__ import annotations

import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends.iptables.backend import IptablesLoader
from backends.nftables.backend import NftablesLoader
from backends.replay import forkserver
from backends.replay.worker import Worker, WorkerEndedError
from backends.tc_ebpf.loader import TcEbpfLoader

ROOT = Path(__file__).resolve().parents[2]
CALL_IT = partial(eval, "lambda message: message()")
IMPORTED = (IptablesLoader, NftablesLoader, TcEbpfLoader)


def ask(worker: Worker, code: str) -> Any:
    return worker.ask(partial(eval, code))


@pytest.fixture
def worker() -> Iterator[Worker]:
    with Worker(CALL_IT) as worker:
        yield worker


def parent_of(worker: Worker) -> int:
    return int(ask(worker, "__import__('os').getppid()"))


def test_workers_are_forks_of_one_server(worker: Worker) -> None:
    with Worker(CALL_IT) as other:
        assert parent_of(other) == parent_of(worker) != os.getpid()
        assert other.pid != worker.pid


def test_the_server_has_one_thread_with_every_loader_imported(worker: Worker) -> None:
    with Worker(partial(_refer, IMPORTED)) as other:
        assert other.ask("backends.tc_ebpf.loader")
    assert len(os.listdir(f"/proc/{parent_of(worker)}/task")) == 1


def _refer(classes: tuple[type, ...]) -> Any:
    return sys.modules.__contains__


def test_environment_and_directory_are_those_of_the_moment(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NFPARITY_TEST", "one")
    monkeypatch.delenv("PATH")
    monkeypatch.chdir(tmp_path)
    with Worker(CALL_IT) as other:
        assert ask(other, "__import__('os').environ.get('NFPARITY_TEST')") == "one"
        assert ask(other, "__import__('os').environ.get('PATH')") is None
        assert ask(other, "__import__('os').getcwd()") == str(tmp_path)
        assert parent_of(other) == parent_of(worker)


def test_other_limits_and_umask_are_inherited(worker: Worker) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = os.umask(0o027)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        with Worker(CALL_IT) as other:
            limit = "__import__('resource').getrlimit(__import__('resource').RLIMIT_NOFILE)"
            assert ask(other, limit) == (soft - 1, hard)
            assert ask(other, "__import__('os').umask(0)") == 0o027
            assert parent_of(other) != parent_of(worker)
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with Worker(CALL_IT) as other:
        assert parent_of(other) == parent_of(worker)


def test_a_worker_outlives_the_thread_that_made_it() -> None:
    made: list[Worker] = []
    thread = threading.Thread(target=lambda: made.append(Worker(CALL_IT)))
    thread.start()
    thread.join()
    with made.pop() as worker:
        assert ask(worker, "6 * 7") == 42


def test_threads_get_each_their_own(worker: Worker) -> None:
    answers: list[tuple[int, int]] = []

    def use(number: int) -> None:
        with Worker(CALL_IT) as own:
            answers.append((number, ask(own, str(number))))

    threads = [threading.Thread(target=use, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [(n, n) for n in range(8)]


def test_a_server_that_is_killed_takes_its_workers_along_and_is_replaced() -> None:
    with Worker(CALL_IT) as worker:
        os.kill(parent_of(worker), signal.SIGKILL)
        with pytest.raises(WorkerEndedError, match="ended by itself"):
            ask(worker, "__import__('time').sleep(600)")
    with Worker(CALL_IT) as other:
        assert ask(other, "6 * 7") == 42


def test_the_status_of_a_worker_that_is_killed_is_known(worker: Worker) -> None:
    with pytest.raises(WorkerEndedError, match="status -9"):
        ask(worker, "__import__('os').kill(__import__('os').getpid(), 9)")
    assert not Path(f"/proc/{worker.pid}").exists()


def test_an_answer_that_ctrl_c_has_left_unread_is_skipped(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (server,) = {s for s in forkserver._servers.values() if s._process.pid == parent_of(worker)}

    class Interrupted:
        """Sends, and is interrupted before it receives."""

        def __init__(self, real: Any) -> None:
            self.fileno = real.fileno
            self.sendmsg = real.sendmsg

        def recv(self, size: int) -> bytes:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(server, "_socket", Interrupted(server._socket))
        with pytest.raises(KeyboardInterrupt):
            Worker(CALL_IT)
    with Worker(CALL_IT) as other:
        assert ask(other, "6 * 7") == 42
        assert ask(other, "__import__('os').getpid()") == other.pid


def test_a_server_is_silent_when_its_parent_ends_before_it_reads_an_answer(
    capfd: pytest.CaptureFixture[str],
) -> None:
    server = forkserver._ForkServer()
    server._socket.send(forkserver._REQUEST.pack(1, os.getpid()))  # it has no such child, and says so
    assert select.select([server._socket], [], [], 60)[0]
    server.close()
    assert server._process.returncode == 0
    assert capfd.readouterr().err == ""


def test_a_start_that_cannot_be_read_is_a_bug() -> None:
    with pytest.raises(RuntimeError, match="in the replay process"):
        Worker(_Unreadable())


class _Unreadable:
    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)

    def __call__(self) -> Any:
        raise AssertionError


_FORKS = """
import os, time
from functools import partial
from backends.replay.worker import Worker

with Worker(partial(eval, "lambda message: message()")) as worker:
    server = worker.ask(partial(eval, "__import__('os').getppid()"))
    if not os.fork():
        os.close(1)
        time.sleep(600)
    print(server, worker.pid, open(
        f"/proc/{os.getpid()}/task/{os.getpid()}/children").read(), flush=True)
    os.kill(os.getpid(), 9)
"""


def test_a_fork_of_the_parent_does_not_keep_them() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FORKS], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False
    )
    server, worker, *children = map(int, done.stdout.split())
    (fork,) = set(children) - {server}
    try:
        while any(_runs(pid) for pid in (server, worker)):
            time.sleep(0.01)
        assert _runs(fork)
    finally:
        os.kill(fork, signal.SIGKILL)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
