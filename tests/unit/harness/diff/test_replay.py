from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction

import pytest

from backends.model.contract import Availability, Job
from backends.model.flow import Flow, Repeated, Send
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Packet
from harness.diff.replay import ReplayOptions, Replays, replay
from harness.diff.sampling import CERTAIN, Share
from translate.errors import MachineError, Note
from translate.ir import Family

DROP = OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.DROP),))

PASS = OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.FORWARD, out="a", src=1, dst=2),))


def flows(count: int) -> list[Flow]:
    packet = Packet(family=Family.IP, src=1, dst=2, proto=17, sport=1, dport=1)
    return [Flow(id=f"f{n}", steps=(Send(packet=packet, entry=None),)) for n in range(count)]


@dataclass
class Drops:
    """Drops everything; ``ids`` replaces the names it answers with, None ends early."""

    name: str = "drops"
    ids: dict[str, str | None] = field(default_factory=dict)
    limits: tuple[Note, ...] = ()
    endless: threading.Event | None = None
    closed: bool = False
    runs: dict[str, int] = field(default_factory=dict)

    def probe(self) -> Availability:
        return Availability(True)

    @contextmanager
    def open(self, job: Job) -> Iterator[Drops]:
        try:
            yield self
        finally:
            self.closed = True

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        for one in flows:
            flow, times = (one.flow, one.times) if isinstance(one, Repeated) else (one, 1)
            self.runs[flow.id] = self.runs.get(flow.id, 0) + times
            name = self.ids.get(flow.id, flow.id)
            if name is None:
                return
            if self.endless is not None:
                self.endless.wait(0.01)
            yield FlowResult(name, (DROP,), runs=times)


def test_results_come_in_order_of_backends_and_flows(worker: Job) -> None:
    told: list[tuple[str, int, int]] = []
    found = replay(
        [Drops("a"), Drops("b")],
        worker,
        flows(3),
        ReplayOptions(progress=lambda name, done, total: told.append((name, done, total))),
    )
    assert [r.backend for r in found] == ["a", "b"]
    assert [x.flow_id for x in found[1].results] == ["f0", "f1", "f2"]
    assert [t for t in told if t[0] == "a"] == [("a", n, 3) for n in range(4)]


@pytest.mark.parametrize("ids", [{"f1": "f2"}, {"f1": None}])
def test_a_backend_that_answers_wrongly_is_the_machines_fault(
    worker: Job, ids: dict[str, str | None]
) -> None:
    backend = Drops(ids=ids)
    with pytest.raises(MachineError, match="expected the result of flow 'f1', got"):
        replay([backend], worker, flows(3))
    assert backend.closed


def test_an_interrupt_closes_every_session(worker: Job) -> None:
    slow = Drops("slow", endless=threading.Event())

    def interrupt(name: str, done: int, total: int) -> None:
        if name == "quick" and done == 2:
            raise KeyboardInterrupt

    quick = Drops("quick")
    with pytest.raises(KeyboardInterrupt):
        replay([slow, quick], worker, flows(100_000), ReplayOptions(progress=interrupt))
    assert slow.closed
    assert quick.closed


def test_a_flow_that_runs_once_is_not_compared(worker: Job) -> None:
    half = Fraction(1, 2)
    wanted = tuple(OutcomeBranch(half, (Outcome(verdict=Verdict.LOCAL, mark=n),)) for n in range(2))
    drops = Drops()
    (found,) = replay(
        [drops],
        worker,
        flows(2),
        ReplayOptions(
            expected=[FlowResult(f"f{n}", wanted) for n in range(2)], sampling=CERTAIN, once={"f0"}
        ),
    )
    assert drops.runs["f0"] == 1 < drops.runs["f1"]
    assert found.differing[0] == () != found.differing[1]


def test_jobs_run_at_the_same_time_and_end_in_the_order_of_their_start(worker: Job) -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(name: str, done: int, total: int) -> None:
        if done == 0:
            both.wait()

    with Replays() as replays:
        for count in (3, 1):
            replays.add(Drops("drops"), worker, flows(count), ReplayOptions(progress=meet))
        assert [len(found.results) for found in replays.results()] == [3, 1]


def test_an_error_ends_the_replays_of_other_jobs(worker: Job) -> None:
    slow, wrong = Drops("slow", endless=threading.Event()), Drops("wrong", ids={"f0": None})

    def collect() -> None:
        with Replays() as replays:
            replays.add(slow, worker, flows(100_000))
            replays.add(wrong, worker, flows(1))
            list(replays.results())

    with pytest.raises(MachineError, match="wrong: expected the result of flow 'f0', got nothing"):
        collect()
    assert slow.closed
    assert wrong.closed


def test_flows_that_may_be_brief_run_once_unless_they_differ(worker: Job) -> None:
    """``f0`` lacks one of its outcomes however often it runs; ``f2`` has one that is not expected."""
    passed = OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.FORWARD, out="a", src=1, dst=2),))
    both = tuple(replace(branch, probability=Fraction(1, 2)) for branch in (DROP, passed))
    neither = (replace(passed, probability=Fraction(1, 2)),) * 2
    expected = [FlowResult(f"f{n}", ways) for n, ways in enumerate((both, both, neither))]
    backend = Drops()
    options = ReplayOptions(expected=expected, sampling=CERTAIN, briefly=frozenset({"f1", "f2"}))
    (replayed,) = replay([backend], worker, flows(3), options)
    assert backend.runs == {"f0": 37, "f1": 1, "f2": 37}
    assert [bool(paths) for paths in replayed.differing] == [True, False, True]


@dataclass
class PassesSeldom(Drops):
    """Drops the first packets of each flow, and passes all after a number of runs."""

    after: int = 0

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        for result in super().replay(flows):
            passes = self.runs[result.flow_id] > self.after
            yield replace(result, branches=(PASS,)) if passes else result


@pytest.mark.parametrize(("after", "runs"), [(4, 8), (8, 12), (24, 28), (100, 37)])
def test_flows_that_share_their_runs_go_on_until_they_have_shown_their_outcomes(
    worker: Job, after: int, runs: int
) -> None:
    """The flow shares 31 runs with seven others, so it begins with 4.

    If 31 runs of its own do not show an outcome, this is a difference.
    """
    both = tuple(replace(branch, probability=Fraction(1, 2)) for branch in (DROP, PASS))
    backend = PassesSeldom(after=after)
    options = ReplayOptions(expected=[FlowResult("f0", both)], sampling=CERTAIN, together={"f0": Share(8)})
    (replayed,) = replay([backend], worker, flows(1), options)
    assert backend.runs == {"f0": runs}
    assert bool(replayed.differing[0]) == (after == 100)


@dataclass
class Traces(Drops):
    """Drops everything; the outcome of each flow in ``settled`` meets no random rule."""

    settled: frozenset[str] = frozenset()

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        for result in super().replay(flows):
            yield replace(result, settled=result.flow_id in self.settled)


@pytest.mark.parametrize("tracing", [{"traces"}, set()], ids=["once at first", "in full at first"])
def test_a_flow_with_a_settled_outcome_that_is_not_expected_runs_once(worker: Job, tracing: set[str]) -> None:
    """``f0`` and ``f1`` are to pass in two ways; ``f2`` and ``f3`` may be dropped, too, and always are."""
    passed = OutcomeBranch(Fraction(1, 2), (Outcome(verdict=Verdict.FORWARD, out="a", src=1, dst=2),))
    dropped = replace(DROP, probability=Fraction(1, 2))
    neither, either = (passed, passed), (passed, dropped)
    expected = [FlowResult(f"f{n}", ways) for n, ways in enumerate((neither, neither, either, either))]
    backend = Traces("traces", settled=frozenset({"f0", "f2"}))
    options = ReplayOptions(expected=expected, sampling=CERTAIN, tracing=tracing)
    (replayed,) = replay([backend], worker, flows(4), options)
    assert backend.runs == {"f0": 1 if tracing else 31, "f1": 37, "f2": 31, "f3": 37}
    assert all(replayed.differing), "also that nothing passes where something may"
    assert [paths[0].path is None for paths in replayed.differing] == [False, False, True, True]


@pytest.mark.parametrize("kept", [True, False])
def test_branches_of_flows_that_do_not_differ_can_be_forgotten(worker: Job, kept: bool) -> None:
    """``f1`` has an outcome that is not expected, and ``f2`` shows its second one late."""
    passed = replace(PASS, probability=Fraction(1, 2))
    either = replace(DROP, probability=Fraction(1, 2)), passed
    expected = [FlowResult(f"f{n}", ways) for n, ways in enumerate(((DROP,), (PASS,), either))]
    options = ReplayOptions(expected=expected, sampling=CERTAIN, together={"f2": Share(5)}, kept=kept)
    (replayed,) = replay([PassesSeldom(after=20)], worker, flows(3), options)
    assert [bool(result.branches) for result in replayed.results] == [kept, True, kept]
    assert [result.runs for result in replayed.results] == [1, 37, 21]
    assert [bool(paths) for paths in replayed.differing] == [False, True, False]
