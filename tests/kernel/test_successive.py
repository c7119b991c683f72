"""Processes that hold one session after the other: each finds everything as in a new process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends.iptables.backend import IptablesBackend, IptablesLoader
from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import Address, Interface, Node
from backends.model.outcome import FlowResult, Verdict
from backends.replay.loader import RuleId
from backends.replay.session import KernelSession, open_session
from backends.replay.successive import lent_worker, workers_kept
from backends.replay.worker import Worker
from backends.testbed.command import run
from backends.testbed.tapnode import TapNode
from harness.corpus.cases import read_case
from harness.diff.backends import BACKENDS, REFERENCE, backend
from harness.diff.compare import compare
from tests.kernel.conftest import Flows
from tests.kernel.helpers.availability import require
from translate.errors import MachineError
from translate.ir import Family

CASES = Path(__file__).parents[1] / "corpus/cases"
CALL_IT = partial(eval, "lambda message: message()")
FAILS = partial(eval, "open('/nowhere')")
RULES = "*nat\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n"


@pytest.fixture
def kept() -> Iterator[None]:
    with workers_kept():
        yield


def ask(worker: Worker, code: str) -> Any:
    return worker.ask(partial(eval, code))


def lent_twice(first: str, kind: str = "k") -> tuple[int, int]:
    """Return the processes of two workers, of which the first has run some code."""
    with lent_worker(kind, CALL_IT) as worker:
        worker.ask(partial(exec, first))
        one = worker.pid
    with lent_worker(kind, CALL_IT) as worker:
        return one, worker.pid


def test_the_next_server_is_in_the_same_process_and_another_namespace(kept: None) -> None:
    places = []
    for _ in range(3):
        with lent_worker("k", CALL_IT) as worker:
            places.append((worker.pid, ask(worker, "__import__('os').readlink('/proc/self/ns/net')")))
    assert len({pid for pid, _ in places}) == 1
    assert places[0][1] != places[1][1]
    assert os.readlink("/proc/self/ns/net") not in {namespace for _, namespace in places}


def test_nothing_is_kept_outside_of_the_context() -> None:
    with workers_kept():
        with lent_worker("k", CALL_IT) as worker:
            inside = worker.pid
        assert Path(f"/proc/{inside}").exists()
        with workers_kept():
            pass
        assert Path(f"/proc/{inside}").exists()
    assert not Path(f"/proc/{inside}").exists()
    one, other = lent_twice("0")
    assert one != other


def test_servers_at_the_same_time_have_a_process_each(kept: None) -> None:
    with lent_worker("k", CALL_IT) as one, lent_worker("k", CALL_IT) as other:
        assert one.pid != other.pid


def test_another_kind_gets_another_process(kept: None) -> None:
    with lent_worker("k", CALL_IT) as worker:
        one = worker.pid
    for kind in ("other", None):
        with lent_worker(kind, CALL_IT) as worker:
            assert worker.pid != one


@pytest.mark.parametrize(
    "left",
    [
        "import builtins, socket; builtins.kept = socket.socket()",
        "import builtins, os; builtins.kept = os.open('/', os.O_RDONLY)",
        "import os; os.close(os.open('/', os.O_RDONLY)); os.dup(0)",
    ],
)
def test_a_process_with_something_open_is_not_used_again(kept: None, left: str) -> None:
    one, other = lent_twice(left)
    assert one != other
    assert not Path(f"/proc/{one}").exists()


def test_a_process_that_was_killed_meanwhile_is_replaced(kept: None) -> None:
    with lent_worker("k", CALL_IT) as worker:
        one = worker.pid
    os.kill(one, signal.SIGKILL)
    with lent_worker("k", CALL_IT) as worker:
        assert worker.pid != one
        assert ask(worker, "6 * 7") == 42


def test_a_server_that_does_not_start_ends_its_process(kept: None) -> None:
    one, same = lent_twice("0")
    assert one == same
    with pytest.raises(MachineError, match="No such file"), lent_worker("k", FAILS):
        pass
    assert not Path(f"/proc/{one}").exists()
    with lent_worker("k", CALL_IT) as worker:
        assert worker.pid != one


def test_an_error_ends_the_process(kept: None) -> None:
    worker: Worker | None = None

    def fail() -> None:
        nonlocal worker
        with lent_worker("k", CALL_IT) as worker:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert worker is not None
    assert not Path(f"/proc/{worker.pid}").exists()


def test_a_process_with_another_environment_or_directory_is_not_used(
    kept: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pid() -> int:
        with lent_worker("k", CALL_IT) as worker:
            return worker.pid

    first = pid()
    with monkeypatch.context() as changed:
        changed.setenv("NFPARITY_TEST", "1")
        second = pid()
        changed.chdir(tmp_path)
        third = pid()
    assert len({first, second, third}) == 3
    assert pid() == first


def test_many_threads(kept: None) -> None:
    pids: list[int] = []

    def use() -> None:
        for _ in range(5):
            with lent_worker("k", CALL_IT) as worker:
                pids.append(worker.pid)
                assert ask(worker, "__import__('os').getpid()") == worker.pid

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pids) == 15
    assert len(set(pids)) <= 3


class Looks(IptablesLoader):
    """Reads the state of its process and of the node before it loads its rules."""

    def load(self, tap: TapNode) -> None:
        sysctls = [path for path in Path("/proc/sys/net").rglob("*") if path.is_file()]
        self.found = {
            "devices": sorted(os.listdir("/sys/class/net")),
            "indexes": tap.indexes,
            "tables": [_text(Path("/proc/self/net", name)) for name in ("route", "arp", "ip_tables_names")],
            "connections": tap.conntrack.count(),
            "sysctls": {str(path): _text(path) for path in sysctls},
            "processors": os.sched_getaffinity(0),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "nft": run(("nft", "list", "ruleset")).stdout,
        }
        super().load(tap)
        tap.run_on(min(os.sched_getaffinity(0)))

    def counters(self) -> Mapping[RuleId, Any]:
        return {("found", "", 0): self.found}


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as e:
        return str(e)


def test_a_session_finds_what_it_would_find_in_a_new_process(kind_node: Node, flows: Flows) -> None:
    """The session before has other rules, connections, neighbours, sysctls and devices."""
    require(IptablesBackend("iptables-legacy"))
    asked = flows.udp("10.244.0.5", "10.244.0.7", 53)
    other = replace(
        kind_node,
        interfaces=(*kind_node.interfaces, Interface("more0", (Address(Family.IP, 0xC0000201, 24),))),
        sysctls={**kind_node.sysctls, "net.ipv4.conf.default.rp_filter": "1", "net.ipv4.ip_default_ttl": "7"},
    )
    found, pids = [], []
    with workers_kept():
        for node in (kind_node, other, kind_node):
            with open_session(node, Looks("iptables-legacy", RULES)) as session:
                found.append(session.counters())
                pids.append(session.pid)
                (passed,) = flows.run(session, asked, "pod5")
                assert passed.verdict is Verdict.FORWARD
    assert pids == pids[:1] * 3
    assert found[0] != found[1]
    assert found[0] == found[2]


@pytest.mark.parametrize("name", [name for name in BACKENDS if name != REFERENCE])
def test_results_do_not_depend_on_earlier_sessions(name: str) -> None:
    """The cases have connections, lists and ipsets."""
    tested = backend(name)
    require(tested)
    cases = [read_case(CASES / case) for case in ("affinity-clients", "set-options", "nat-ports")]
    expected: list[list[tuple[Flow, FlowResult]]] = []
    for case in cases:
        with backend(REFERENCE).open(Job(rules=case.ruleset, node=case.node)) as reference:
            results = zip(case.flows, reference.replay(case.flows), strict=True)
            expected.append([each for each in results if len(each[1].branches) == 1])
    pids = set()
    with workers_kept():
        for case, wanted in [*zip(cases, expected, strict=True)] * 2:
            with tested.open(Job(rules=case.ruleset, node=case.node)) as session:
                assert isinstance(session, KernelSession)
                pids.add(session.pid)
                for (flow, right), seen in zip(wanted, session.replay(f for f, _ in wanted), strict=True):
                    assert compare(flow, right, seen) == ()
    assert len(pids) == 1
