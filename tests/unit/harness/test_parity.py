"""The differential engine, with a backend that does what the simulator says, but for one thing."""

from __future__ import annotations

import random
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import pytest

from backends.contract import Availability, Backend, Job
from backends.flow import Flow
from backends.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.packet import Port, PortClass
from backends.simulator import SimulatorBackend
from harness.batches import Batch
from harness.corpus.jsonlines import read_flows
from harness.deciding import deciding_rules
from harness.parity import ParityReport, Plan, choose_backends, run_parity
from translate.errors import InputError, MachineError, Note, Refusal, UnsupportedError
from translate.ir import NOWHERE

Change = Callable[[Outcome], Outcome]

LINES = (
    '{"id": "dns", "in": "pod5", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 40000,'
    ' "dport": 53, "then": [{"reply": {}}]}\n'
    '{"id": "off", "in": "eth0", "src": "172.18.0.9", "dst": "10.96.0.10", "proto": "tcp", "sport": 40001,'
    ' "dport": 9153}\n'
    '{"id": "direct", "in": "eth0", "src": "172.18.0.9", "dst": "10.244.0.5", "proto": "tcp", "sport": 40002,'
    ' "dport": 80}\n'
)


@dataclass
class Fake:
    """Takes one branch of the simulator's, as a kernel would, and changes what it shows."""

    name: str = "fake"
    change: Change = lambda outcome: outcome
    first_weight: float = 0.5
    notes: tuple[str, ...] = ()
    limits: tuple[Note, ...] = ()
    refuses: bool = False
    breaks_at: int | None = None
    closed: int = 0

    def probe(self) -> Availability:
        return Availability(True)

    @contextmanager
    def open(self, job: Job) -> Iterator[Fake]:
        if self.refuses:
            raise UnsupportedError((Refusal(NOWHERE, self.name, "colour", "cannot express colour"),))
        self.job = job
        try:
            yield self
        finally:
            self.closed += 1

    def replay(self, flows: Iterable[Flow]) -> Iterator[FlowResult]:
        draw = random.Random(1)
        with SimulatorBackend().open(self.job) as session:
            for number, result in enumerate(session.replay(flows)):
                if number == self.breaks_at:
                    raise MachineError("the kernel is on fire")
                branches = result.branches
                weights = (
                    [self.first_weight, 1 - self.first_weight] if len(branches) == 2 else [1] * len(branches)
                )
                branch = draw.choices(branches, weights)[0]
                outcomes = tuple(self.change(self._seen(o, draw)) for o in branch.outcomes)
                yield FlowResult(result.flow_id, (OutcomeBranch(Fraction(1), outcomes),), self.notes)

    def _seen(self, outcome: Outcome, draw: random.Random) -> Outcome:
        def number(port: Port | None) -> Port | None:
            return draw.randint(port.low, port.high) if isinstance(port, PortClass) else port

        return replace(outcome, sport=number(outcome.sport), dport=number(outcome.dport))


def plan(job: Job, **changes: object) -> Plan:
    flows = read_flows(LINES.encode(), name="flows.jsonl", node=job.node)
    batch = Batch(
        rules_path="rules",
        ruleset=job.ruleset,
        node=job.node,
        flows=flows,
        corpus="flows.jsonl",
        node_path="w.json",
    )
    return replace(Plan(batches=(batch,)), **changes)  # type: ignore[arg-type]


def run(job: Job, *fakes: Fake, requested: bool = False, **changes: object) -> ParityReport:
    return run_parity(
        plan(job, **changes),
        fakes,
        reference=SimulatorBackend(),
        rules=deciding_rules,
        requested=requested,
        progress=lambda name, done, total: None,
    )


def test_parity(worker: Job) -> None:
    report = run(worker, Fake(), repeat=100)
    assert report.parity
    assert report.flows == 203
    assert report.repeated == 200
    assert report.share_tests


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("dst", lambda o: replace(o, dst=o.dst ^ 1) if o.dst else o),
        ("dport", lambda o: replace(o, dport=1) if o.dport is not None else o),
        ("src", lambda o: replace(o, src=1) if o.src is not None else o),
        ("sport", lambda o: replace(o, sport=80) if o.sport is not None else o),
        ("mark", lambda o: replace(o, mark=0x4000) if o.mark is not None else o),
        ("ttl", lambda o: replace(o, ttl=1) if o.ttl is not None else o),
        ("out", lambda o: replace(o, out="lo") if o.out is not None else o),
        ("snat", lambda o: replace(o, snat=not o.snat)),
        ("dnat", lambda o: replace(o, dnat=not o.dnat)),
        ("verdict", lambda o: Outcome(verdict=Verdict.DROP)),
        ("verdict", lambda o: Outcome(verdict=Verdict.REJECT, reject_with="tcp-reset")),
    ],
)
def test_every_kind_of_difference_is_seen(worker: Job, field: str, change: Change) -> None:
    report = run(worker, Fake(change=change))
    assert not report.parity
    assert field in {d.field for d in report.differences}
    assert {d.flow_id for d in report.differences} == {"dns", "off", "direct"}
    assert report.backends[0].differing == 3


def test_a_difference_names_everything(worker: Job) -> None:
    def wrong(outcome: Outcome) -> Outcome:
        return replace(outcome, dport=5353) if outcome.dport == 9153 else outcome

    report = run(worker, Fake(change=wrong), level=0)
    (found,) = report.differences
    assert (found.backend, found.flow_id, found.flow_source) == ("fake", "off", "flows.jsonl:2")
    assert (found.field, found.expected, found.observed) == ("dport", 9153, 5353)
    dnat = [r for r in found.rules if "-j DNAT --to-destination" in r]
    assert len(dnat) == 1
    assert dnat[0].startswith("kind:")
    assert any("MASQUERADE" in r for r in found.rules)
    words = shlex.split(found.command)
    assert words[:2] == ["nfparity", "diff"]
    assert " ".join(words[2:]) == "rules --corpus flows.jsonl --node w.json --only off --backends fake -O 0"


def test_a_given_ruleset_is_replayed_by_its_file_and_has_no_level(worker: Job) -> None:
    def wrong(outcome: Outcome) -> Outcome:
        return replace(outcome, dport=5353) if outcome.dport == 9153 else outcome

    report = run(worker, Fake(name="kube.nft", change=wrong), against="kube.nft")
    (found,) = report.differences
    assert found.command.endswith("--only off --against kube.nft")
    assert report.level is None
    fakes = Fake(name="kube.nft", change=wrong), Fake(change=wrong)
    other = run(worker, *fakes, against="kube.nft", beside="rest", level=1)
    assert other.level == 1
    assert [d.command.partition("--only ")[2] for d in other.differences] == [
        "off --against kube.nft --beside rest",
        "off --backends fake -O 1",
    ]


def test_a_reply_is_decided_by_the_rules_that_bound_its_connection(worker: Job) -> None:
    def wrong(outcome: Outcome) -> Outcome:
        return replace(outcome, sport=54) if outcome.sport == 53 else outcome

    (found,) = run(worker, Fake(change=wrong)).differences
    assert found.step == 1
    assert any("-j DNAT" in r for r in found.rules)


def test_notes_are_differences(worker: Job) -> None:
    report = run(worker, Fake(notes=("wrong TCP checksum",)))
    assert [d.observed for d in report.differences] == ["wrong TCP checksum"] * 3


def test_known_limits_are_said_once_and_are_no_differences(worker: Job) -> None:
    note = Note(NOWHERE, "fake", "colour", "knows sixteen colours")
    report = run(worker, Fake(limits=(note, note)))
    assert report.parity
    assert report.notes == (note,)
    assert "knows sixteen colours [colour]" in note.render()


def test_unfair_shares_are_differences(worker: Job) -> None:
    report = run(worker, Fake(first_weight=0.8), repeat=200)
    assert {d.field for d in report.differences} == {"share"}
    assert {d.flow_id for d in report.differences} == {"dns", "off"}
    assert all("--repeat 200" in d.command for d in report.differences)
    assert run(worker, Fake(first_weight=0.8)).parity, "without repetitions nothing is known about shares"


def test_a_backend_that_refuses_is_skipped_unless_it_was_asked_for(worker: Job) -> None:
    report = run(worker, Fake(refuses=True), Fake(name="other"))
    assert report.parity
    assert "cannot express colour" in (report.backends[0].skipped or "")
    with pytest.raises(UnsupportedError):
        run(worker, Fake(refuses=True), requested=True)


def test_every_session_is_closed_when_one_breaks(worker: Job) -> None:
    good, bad = Fake(name="good"), Fake(name="bad", breaks_at=1)
    with pytest.raises(MachineError, match="on fire"):
        run(worker, good, bad)
    assert (good.closed, bad.closed) == (1, 1)


@dataclass
class Absent(Fake):
    def probe(self) -> Availability:
        return Availability(False, "no such kernel")


def test_backends_that_cannot_run() -> None:
    made: dict[str, Backend] = {"here": Fake(name="here"), "gone": Absent(name="gone")}
    able, skipped = choose_backends(["simulator", "here", "gone"], requested=False, make=made.__getitem__)
    assert [b.name for b in able] == ["here"]
    assert [(s.name, s.skipped) for s in skipped] == [("gone", "no such kernel")]
    with pytest.raises(MachineError, match="no such kernel"):
        choose_backends(["here", "gone"], requested=True, make=made.__getitem__)
    with pytest.raises(MachineError):
        choose_backends(["gone"], requested=False, make=made.__getitem__)
    with pytest.raises(InputError):
        choose_backends(["simulator"], requested=True)
