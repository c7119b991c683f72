"""Running a flow through the node, once per branch: outcomes, and traces for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from backends.contract import Job
from backends.exchange import Arrival, Emission, Exchange
from backends.flow import Flow, Pause, Step
from backends.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.packet import Packet, Port
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

    Raises UnsupportedError when a rule cannot be simulated.
    """

    def __init__(self, job: Job) -> None:
        self._prepared: Prepared = prepare(job.ruleset)
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
        found: dict[tuple[Outcome, ...], Fraction] = {}
        exchange = self._begun(flow)

        def run(chooser: Chooser) -> tuple[Outcome, ...]:
            steps = self._steps(exchange.afresh(), self._run(chooser, traced=False))
            return tuple(s.outcome for s in steps if s.outcome is not None)

        for probability, outcomes in _followed(flow, run):
            found[outcomes] = found.get(outcomes, Fraction(0)) + probability
        return FlowResult(flow.id, tuple(OutcomeBranch(p, o) for o, p in found.items()))

    def trace(self, flow: Flow) -> tuple[TracedBranch, ...]:
        """Return every branch, not added up, with everything that happened on it."""
        exchange = self._begun(flow)

        def run(chooser: Chooser) -> tuple[TracedStep, ...]:
            return tuple(self._steps(exchange.afresh(), self._run(chooser, traced=True)))

        return tuple(TracedBranch(p, steps) for p, steps in _followed(flow, run))

    def _run(self, chooser: Chooser, *, traced: bool) -> _Run:
        ports = Ports(chooser)
        recorder = Recorder(traced)
        conntrack = Conntrack(self._settings, ports)
        nat = Nat(conntrack, self._router, ports, recorder, self._family)
        lists = RecentLists(self._prepared.recent)
        evaluator = Evaluator(Memory(chooser, ports, lists), recorder)
        stack = Stack(self._prepared, self._router, conntrack, nat, evaluator, recorder)
        return _Run(stack, ports, recorder, lists)

    def _begun(self, flow: Flow) -> Exchange:
        if flow.family is not self._family:
            raise InputError(f"flow {flow.id!r} is not of the family of the rules, {self._family.value}")
        return Exchange(flow)

    def _steps(self, exchange: Exchange, run: _Run) -> Iterator[TracedStep]:
        for step in exchange.flow.steps:
            if isinstance(step, Pause):
                run.wait(step.seconds)
                yield TracedStep(step=step, emission=None, events=(), outcome=None)
                continue
            emission = exchange.emit(step)
            if emission is None:
                outcome = Outcome(verdict=Verdict.UNSENT)
                yield TracedStep(step=step, emission=None, events=(), outcome=outcome)
                continue
            yield self._step(step, emission, exchange, run)

    def _step(self, step: Step, emission: Emission, exchange: Exchange, run: _Run) -> TracedStep:
        if emission.entry is None:
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
        return TracedStep(step=step, emission=emission, events=run.recorder.take(), outcome=outcome)


def _followed(flow: Flow, run: Callable[[Chooser], T]) -> Iterator[tuple[Fraction, T]]:
    try:
        yield from branches(run)
    except TooManyBranches:
        raise InputError(
            f"flow {flow.id!r} can go more than {MOST_BRANCHES} ways: rules draw chance anew for each of"
            f" its {len(flow.steps)} steps; make it shorter"
        ) from None


def simulate(job: Job, flow: Flow) -> FlowResult:
    """Return what the kernel would do with the flow: every branch, probabilities summing to 1.

    For many flows, make one :class:`Simulation`. Raises UnsupportedError as it does.
    """
    return Simulation(job).simulate(flow)


def trace(job: Job, flow: Flow) -> tuple[TracedBranch, ...]:
    """Return every branch of the flow with each rule visited and each decision on the way."""
    return Simulation(job).trace(flow)


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
