"""The differential engine, with a backend that does what the simulator says, but for one thing."""

from __future__ import annotations

import json
import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from backends.model.contract import Availability, Backend, Job
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult, Outcome, Verdict, seen_branches
from backends.model.packet import Port, PortClass
from backends.simulator import SimulatorBackend
from harness.corpus.formats.jsonlines import read_flows
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, choose_backends, run_parity
from harness.diff.result import ParityReport, Result
from harness.report.jsonreport import parity_json
from translate.errors import InputError, MachineError, Note, Refusal, UnsupportedError
from translate.ir import NOWHERE, Family, parse_address

Change = Callable[[Outcome], Outcome]
FIRST_ENDPOINT = parse_address(Family.IP, "10.244.0.3")

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
    seed: int = 1

    def probe(self) -> Availability:
        return Availability(True)

    @contextmanager
    def open(self, job: Job) -> Iterator[Fake]:
        if self.refuses:
            raise UnsupportedError((Refusal(NOWHERE, self.name, "colour", "cannot express colour"),))
        self.job = job
        self.draw = random.Random(self.seed)
        try:
            yield self
        finally:
            self.closed += 1

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        with SimulatorBackend().open(self.job) as session:
            for number, one in enumerate(flows):
                if number == self.breaks_at:
                    raise MachineError("the kernel is on fire")
                (result,) = session.replay([one])
                times = one.times if isinstance(one, Repeated) else 1
                counts = Counter(self._run(result) for _ in range(times))
                yield FlowResult(result.flow_id, seen_branches(counts), self.notes, times)

    def _run(self, result: FlowResult) -> tuple[Outcome, ...]:
        branches = result.branches
        weights = [self.first_weight, 1 - self.first_weight] if len(branches) == 2 else [1] * len(branches)
        branch = self.draw.choices(branches, weights)[0]
        return tuple(self.change(self._seen(o)) for o in branch.outcomes)

    def _seen(self, outcome: Outcome) -> Outcome:
        def number(port: Port | None) -> Port | None:
            return self.draw.randint(port.low, port.high) if isinstance(port, PortClass) else port

        return replace(outcome, sport=number(outcome.sport), dport=number(outcome.dport))


def plan(job: Job, **changes: object) -> Plan:
    flows = read_flows(LINES.encode(), name="flows.jsonl", node=job.node)
    batch = Batch(
        rules_path="rules",
        rules=job.ruleset,
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
    assert (report.flows, report.chancy, report.repeated) == (3, 2, 198)
    assert report.share_tests
    assert report.result is Result.PARITY


def to_the_first(outcome: Outcome) -> Outcome:
    """Nothing arrives at one of the two endpoints."""
    return Outcome(verdict=Verdict.DROP) if outcome.dst == FIRST_ENDPOINT else outcome


def unmasqueraded(outcome: Outcome) -> Outcome:
    """The client comes from a port of the backend's own choice, and keeps its address."""
    return replace(outcome, src=1, snat=True) if isinstance(outcome.sport, int) and outcome.snat else outcome


@pytest.mark.parametrize("change", [to_the_first, unmasqueraded])
def test_what_chance_draws_is_not_in_the_report(worker: Job, change: Change) -> None:
    reports = [run(worker, Fake(change=change, seed=seed)) for seed in range(8)]
    assert reports[0].differences
    assert {parity_json(one) for one in reports} == {parity_json(reports[0])}


def test_what_chance_draws_is_in_the_report_of_single_runs(worker: Job) -> None:
    reports = [run(worker, Fake(change=to_the_first, seed=seed), miss=1.0) for seed in range(8)]
    assert len({parity_json(one) for one in reports}) > 1


def test_an_endpoint_that_is_never_chosen_is_a_difference(worker: Job) -> None:
    report = run(worker, Fake(first_weight=1.0))
    assert {(d.flow_id, d.field, d.observed) for d in report.differences} == {
        ("dns", "path", "never seen"),
        ("off", "path", "never seen"),
    }
    assert all(any("-j DNAT" in rule for rule in d.rules) for d in report.differences)
    assert run(worker, Fake(first_weight=1.0), miss=1.0).parity, "one run says nothing of the other way"


def test_flows_that_chance_does_not_decide_are_run_once(worker: Job) -> None:
    asked: list[Flow | Repeated] = []

    class Listening(Fake):
        def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
            def heard() -> Iterator[Flow | Repeated]:
                for one in flows:
                    asked.append(one)
                    yield one

            return super().replay(heard())

    assert run(worker, Listening()).parity
    assert [one.times if isinstance(one, Repeated) else 1 for one in asked] == [31, 31, 1]


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

    report = run(
        worker, Fake(name="kube.nft", change=wrong), against="kube.nft", against_names=frozenset({"kube.nft"})
    )
    (found,) = report.differences
    assert found.command.endswith("--only off --against kube.nft")
    assert report.level is None
    fakes = Fake(name="kube.nft", change=wrong), Fake(change=wrong)
    other = run(
        worker,
        *fakes,
        against="kube.nft",
        against_names=frozenset({"kube.nft"}),
        with_iptables="rest",
        level=1,
    )
    assert other.level == 1
    assert [d.command.partition("--only ")[2] for d in other.differences] == [
        "off --against kube.nft --with-iptables rest",
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
    again = run(worker, Fake(first_weight=0.8, seed=2), repeat=200)
    assert parity_json(again) == parity_json(report), "no count and no p-value is told"
    assert run(worker, Fake(first_weight=0.8)).parity, "without repetitions nothing is known about shares"


def test_what_a_backend_refuses_it_has_not_tested(worker: Job) -> None:
    report = run(worker, Fake(refuses=True), Fake(name="other"))
    assert report.result is Result.NOT_TESTED
    assert not report.parity
    refusing, other = report.backends
    assert "cannot express colour" in refusing.untested[0]
    assert (refusing.flows, other.flows) == (0, 3)
    assert [case.untested for case in refusing.cases] == [refusing.untested[0]] * 3
    assert json.loads(parity_json(report))["result"] == "not tested"
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


def test_a_difference_is_one_whatever_else_was_not_tested(worker: Job) -> None:
    report = run(worker, Fake(refuses=True), Fake(name="other", change=to_the_first))
    assert report.result is Result.DIFFERENCES


def test_rules_that_one_batch_has_do_not_keep_a_backend_from_the_others(worker: Job) -> None:
    (batch,) = plan(worker).batches
    refused = replace(batch, rules=replace(batch.ruleset, source="refused"), rules_path="refused")

    class Choosy(Fake):
        @contextmanager
        def open(self, job: Job) -> Iterator[Fake]:
            self.refuses = job.ruleset.source == "refused"
            with super().open(job) as session:
                yield session

    report = run(worker, Choosy(), batches=(refused, batch))
    (one,) = report.backends
    assert report.result is Result.NOT_TESTED
    assert (report.flows, one.flows, len(one.cases)) == (6, 3, 6)


def test_backends_that_cannot_run() -> None:
    made: dict[str, Backend] = {"here": Fake(name="here"), "gone": Absent(name="gone")}
    able, skipped = choose_backends(["simulator", "here", "gone"], requested=False, make=made.__getitem__)
    assert [b.name for b in able] == ["here"]
    assert [(s.name, s.skipped) for s in skipped] == [("gone", "no such kernel")]
    able, named = choose_backends(["here", "gone"], requested=True, make=made.__getitem__)
    assert [b.name for b in able] == ["here"]
    assert [(s.skipped, s.untested) for s in named] == [(None, ("cannot run here: no such kernel",))]
    with pytest.raises(MachineError, match="no such kernel"):
        choose_backends(["gone"], requested=True, make=made.__getitem__)
    with pytest.raises(MachineError):
        choose_backends(["gone"], requested=False, make=made.__getitem__)
    with pytest.raises(InputError):
        choose_backends(["simulator"], requested=True)


def test_progress_counts_the_flows_of_all_batches_for_every_backend(worker: Job) -> None:
    (batch,) = plan(worker).batches
    told: dict[str, list[tuple[int, int]]] = {}
    run_parity(
        Plan(batches=(batch, batch)),
        [Fake()],
        reference=SimulatorBackend(),
        rules=deciding_rules,
        progress=lambda name, done, total: told.setdefault(name, []).append((done, total)),
    )
    assert {one[-1] for one in told.values()} == {(6, 6)}
    assert {total for counts in told.values() for _, total in counts} == {6}


def test_a_light_trial_runs_few_of_the_flows_that_others_resemble(worker: Job) -> None:
    told: dict[str, int] = {}
    (batch,) = plan(worker).batches
    alike = frozenset(flow.id for flow in batch.flows)
    full, light = Fake(), Fake(name="light")
    report = run_parity(
        Plan(batches=(replace(batch, alike=alike),), lightly=frozenset({"light"})),
        [full, light],
        reference=SimulatorBackend(),
        rules=deciding_rules,
        progress=lambda name, done, total: told.update({name: total}),
    )
    assert report.parity
    assert report.flows == 3
    assert {each.name: each.flows for each in report.backends} == {"fake": 3, "light": 2}
    assert (told["fake"], told["light"]) == (3, 2)


def test_a_light_trial_shows_a_difference(worker: Job) -> None:
    (batch,) = plan(worker).batches
    alike = frozenset(flow.id for flow in batch.flows)
    report = run_parity(
        Plan(batches=(replace(batch, alike=alike),), lightly=frozenset({"light"})),
        [Fake(name="light", change=lambda outcome: replace(outcome, ttl=9))],
        reference=SimulatorBackend(),
        rules=deciding_rules,
        progress=lambda *_: None,
    )
    assert {each.name: each.differing for each in report.backends} == {"light": 2}
