"""Running a flow through the node, once per branch: outcomes, and traces for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from backends.contract import Job
from backends.exchange import Arrival, Emission, Exchange
from backends.flow import Flow, Pause, Step
from backends.outcome import Assumption, FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.packet import Packet, Port
from backends.simulator.assumptions import Assumptions, Undecided, Way, added_up, without_needless
from backends.simulator.checkpoint import Checkpoint
from backends.simulator.chooser import MOST_BRANCHES, Chooser, TooManyBranches, branches
from backends.simulator.conditions import Memory
from backends.simulator.conntrack import Conntrack, TrackSettings
from backends.simulator.evaluate import Evaluator
from backends.simulator.nat import Nat
from backends.simulator.ports import Ports
from backends.simulator.prepare import Prepared, prepare
from backends.simulator.recent import RecentLists
from backends.simulator.router import AnyRouter, router_of
from backends.simulator.stack import Delivered, Dropped, Fate, Forwarded, Rejected, Stack
from backends.simulator.trace import Ended, Recorder, TracedBranch, TracedStep
from translate.errors import InputError

__all__ = ["Simulation", "simulate", "trace"]

T = TypeVar("T")


_Done = tuple[Step, Emission | None, Outcome | None]
"""One step of the flow: what it sent (None: nothing), and what became of that (None: of a pause)."""


@dataclass(slots=True)
class _Run:
    """One run of a flow: a fresh node, with its own connections and clock."""

    stack: Stack
    ports: Ports
    recorder: Recorder
    lists: RecentLists

    def wait(self, seconds: float) -> None:
        self.stack.conntrack.now += seconds
        self.lists.now += seconds


class Simulation:
    """A Job made ready to run flows through.

    With ``assuming``, rules of which the input hides something are followed both ways, and outcomes
    say what they assume. Raises UnsupportedError when a rule cannot be simulated; without
    ``assuming`` also when something of it is hidden.
    """

    def __init__(self, job: Job, *, assuming: bool = False) -> None:
        self._prepared: Prepared = prepare(job.ruleset, assuming=assuming)
        self._family = job.ruleset.family
        self._router: AnyRouter = router_of(job.node, self._family)
        sysctl = job.node.sysctl
        self._settings = TrackSettings(
            checksum=sysctl("net.netfilter.nf_conntrack_checksum") != "0",
            tcp_loose=sysctl("net.netfilter.nf_conntrack_tcp_loose") != "0",
            tcp_be_liberal=sysctl("net.netfilter.nf_conntrack_tcp_be_liberal") != "0",
        )

    def simulate(self, flow: Flow) -> FlowResult:
        """Return every way the flow can go, equal ones added up, with exact probabilities.

        Raises InputError for a flow of another address family than the rules, and when there are too
        many ways to follow.
        """
        exchange = self._begun(flow)

        def run(chooser: Chooser) -> tuple[tuple[Outcome, ...], tuple[Assumption, ...]]:
            done = self._steps(exchange.afresh(), self._run(chooser, traced=False), chooser.start)
            return tuple([outcome for *_, outcome in done if outcome is not None]), tuple(chooser.assuming)

        found: dict[tuple[tuple[Outcome, ...], tuple[Assumption, ...]], Fraction] = {}
        for probability, way in _followed(flow, run):
            same = found.get(way)
            found[way] = probability if same is None else same + probability
        branches = [OutcomeBranch(p, outcomes, assuming) for (outcomes, assuming), p in found.items()]
        if any(branch.assuming for branch in branches):
            ways = added_up([Way(b.probability, b.assuming, b.outcomes, None) for b in branches])
            branches = [OutcomeBranch(w.probability, w.outcomes, w.assuming) for w in ways]
        return FlowResult(flow.id, tuple(branches))

    def trace(self, flow: Flow) -> tuple[TracedBranch, ...]:
        """Return every branch, not added up, with everything that happened on it.

        Of two that differ only in an assumption which changes no outcome, one is returned, without it.
        """
        exchange = self._begun(flow)

        def run(chooser: Chooser) -> tuple[tuple[TracedStep, ...], tuple[Assumption, ...]]:
            here = self._run(chooser, traced=True)
            steps = [
                TracedStep(step=step, emission=emission, events=here.recorder.take(), outcome=outcome)
                for step, emission, outcome in self._steps(exchange.afresh(), here)
            ]
            return tuple(steps), tuple(chooser.assuming)

        ways = [
            Way(probability, assuming, tuple(s.outcome for s in steps if s.outcome is not None), steps)
            for probability, (steps, assuming) in _followed(flow, run)
        ]
        return tuple(TracedBranch(w.probability, w.result, w.assuming) for w in without_needless(ways))

    def _run(self, chooser: Chooser, *, traced: bool) -> _Run:
        ports = Ports(chooser)
        recorder = Recorder(traced)
        conntrack = Conntrack(self._settings, ports)
        nat = Nat(conntrack, self._router, ports, recorder, self._family)
        lists = RecentLists(self._prepared.recent)
        memory = Memory(chooser, ports, lists, Assumptions(chooser), self._prepared.sets)
        evaluator = Evaluator(memory, recorder)
        stack = Stack(self._prepared, self._router, conntrack, nat, evaluator, recorder)
        return _Run(stack, ports, recorder, lists)

    def _begun(self, flow: Flow) -> Exchange:
        if flow.family is not self._family:
            raise InputError(f"flow {flow.id!r} is not of the family of the rules, {self._family.value}")
        return Exchange(flow)

    def _steps(self, exchange: Exchange, run: _Run, start: Checkpoint | None = None) -> Iterator[_Done]:
        unknown: Outcome | None = None
        for step in exchange.flow.steps:
            if isinstance(step, Pause):
                run.wait(step.seconds)
                yield step, None, None
                continue
            if unknown is not None:
                yield step, None, unknown
                continue
            emission = exchange.emit(step)
            if emission is None:
                yield step, None, Outcome(verdict=Verdict.UNSENT)
                continue
            try:
                outcome = self._step(emission, exchange, run, start)
            except Undecided as e:
                outcome = unknown = Outcome(verdict=Verdict.UNKNOWN, hidden=str(e))
                run.recorder.add(Ended(unknown, str(e)))
            run.stack.first, start = False, None
            yield step, emission, outcome

    def _step(self, emission: Emission, exchange: Exchange, run: _Run, start: Checkpoint | None) -> Outcome:
        if start is not None:
            fate = run.stack.resume(start)
        elif emission.entry is None:
            fate = run.stack.send(emission.packet)
        else:
            fate = run.stack.receive(emission.packet, emission.entry)
        match fate:
            case Forwarded():
                exchange.arrived(Arrival(fate.packet, fate.out))
            case Delivered():
                exchange.arrived(Arrival(fate.packet, None))
            case Dropped() | Rejected():
                pass
        outcome = _outcome(emission.packet, fate, run.ports)
        if run.recorder.enabled:
            run.recorder.add(Ended(outcome, _why(fate)))
        return outcome


def _followed(flow: Flow, run: Callable[[Chooser], T]) -> Iterator[tuple[Fraction, T]]:
    try:
        yield from branches(run)
    except TooManyBranches:
        raise InputError(
            f"flow {flow.id!r} can go more than {MOST_BRANCHES} ways: rules draw chance anew for each of"
            f" its {len(flow.steps)} steps, or hide too much; make it shorter"
        ) from None


def simulate(job: Job, flow: Flow) -> FlowResult:
    """Return what the kernel would do with the flow: every branch, probabilities summing to 1.

    For many flows, make one :class:`Simulation`. Raises UnsupportedError as it does.
    """
    return Simulation(job).simulate(flow)


def trace(job: Job, flow: Flow, *, assuming: bool = False) -> tuple[TracedBranch, ...]:
    """Return every branch of the flow with each rule visited and each decision on the way."""
    return Simulation(job, assuming=assuming).trace(flow)


def _why(fate: Fate) -> str:
    match fate:
        case Forwarded():
            return f"left on {fate.out}"
        case Delivered():
            return "delivered to the node"
        case Dropped() | Rejected():
            return fate.why


def _outcome(sent: Packet, fate: Fate, ports: Ports) -> Outcome:
    out: str | None = None
    match fate:
        case Dropped():
            return Outcome(verdict=Verdict.DROP)
        case Rejected():
            return Outcome(verdict=Verdict.REJECT, reject_with=fate.kind)
        case Forwarded():
            verdict, out = Verdict.FORWARD, fate.out
        case Delivered():
            verdict = Verdict.LOCAL
    packet = fate.packet
    sport, dport = _shown_ports(packet, ports)
    if (packet.sport, packet.dport, packet.icmp_id) == (sent.sport, sent.dport, sent.icmp_id):
        before_sport, before_dport = sport, dport
    else:
        before_sport, before_dport = _shown_ports(sent, ports)
    quoted = None
    if packet.quoted is not None:
        quoted = QuotedTuple(packet.quoted.src, packet.quoted.dst, *_shown_ports(packet.quoted, ports))
    return Outcome(
        verdict=verdict,
        out=out,
        src=packet.src,
        dst=packet.dst,
        sport=sport,
        dport=dport,
        ttl=packet.ttl,
        mark=fate.mark,
        dnat=(packet.dst, dport) != (sent.dst, before_dport),
        snat=(packet.src, sport) != (sent.src, before_sport),
        quoted=quoted,
    )


def _shown_ports(packet: Packet, ports: Ports) -> tuple[Port | None, Port | None]:
    if packet.is_icmp:
        return ports.shown(packet.icmp_id), None
    if not packet.has_ports:
        return None, None
    return ports.shown(packet.sport), ports.shown(packet.dport)
