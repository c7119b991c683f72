"""Running a flow through the node, once per branch: outcomes and traces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Final, TypeVar

from backends.model.clock import begun_at, reads_clock
from backends.model.contract import Job
from backends.model.conversation import Arrival, Conversation, Emission
from backends.model.flow import Flow, Pause, Step
from backends.model.outcome import Assumption, FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Packet, Port
from backends.model.timeouts import timeouts_of
from backends.simulator.chance.chooser import Choices, Chooser, TooManyBranches, branches
from backends.simulator.chance.ports import Ports
from backends.simulator.conntrack.table import Conntrack, TrackSettings
from backends.simulator.hooks.fate import Delivered, Dropped, Fate, Forwarded, Rejected
from backends.simulator.hooks.stack import Stack
from backends.simulator.matching.assumptions import Assumptions, Run, added_up, without_needless
from backends.simulator.matching.connlimits import ConnectionLists
from backends.simulator.matching.filledsets import FilledSets
from backends.simulator.matching.hashlimits import HashTables
from backends.simulator.matching.memory import Memory
from backends.simulator.matching.recent import RecentLists
from backends.simulator.matching.undecided import Undecided
from backends.simulator.nat.binding import Nat
from backends.simulator.routing.router import AnyRouter, router_of
from backends.simulator.trace import Ended, Recorder, TracedBranch, TracedStep
from backends.simulator.walk.checkpoint import Checkpoint
from backends.simulator.walk.fast import FastWalk
from backends.simulator.walk.indexed import IndexedWalk
from backends.simulator.walk.plain import Jumps, PlainWalk
from backends.simulator.walk.prepare import Prepared, prepare
from backends.simulator.walk.watching import Watched, WatchedRulesPassed, WatchingWalk
from translate.dataclass import dataclass
from translate.errors import InputError

__all__ = ["Simulation", "simulate", "trace"]

T = TypeVar("T")

_DROP: Final = Outcome(verdict=Verdict.DROP)

_StepResult = tuple[Step, Emission | None, Outcome | None]
"""A step of the flow, its packet (None if nothing was sent) and its outcome (None for a pause)."""


@dataclass(slots=True)
class _Node:
    """The node of a simulation; each run begins without any state."""

    stack: Stack
    memory: Memory

    def begin(self, chooser: Chooser[Checkpoint]) -> None:
        self.stack.begin()
        self.memory.begin(chooser)
        if isinstance(self.stack.walk, FastWalk):
            self.stack.walk.chooser = chooser

    def wait(self, seconds: float) -> None:
        self.stack.conntrack.now += seconds
        self.memory.lists.now += seconds


class Simulation:
    """A Job that is prepared to simulate flows, one at a time.

    With ``assuming``, a rule with hidden parts makes two branches, whose outcomes name the assumption. Raises
    UnsupportedError if a rule cannot be simulated, and without ``assuming`` also if a part of a rule is
    hidden. ``now`` is the clock of flows that have no time, in seconds since 1970.
    """

    def __init__(self, job: Job, *, assuming: bool = False, now: Callable[[], float] = time.time) -> None:
        self._now = now if reads_clock(job.ruleset) else None
        self._prepared: Prepared = prepare(job.ruleset, assuming=assuming)
        self._family = job.ruleset.family
        self._router: AnyRouter = router_of(job.node, self._family)
        self._links = {interface.name: n for n, interface in enumerate(job.node.interfaces, 1)}
        sysctl = job.node.sysctl
        self._settings = TrackSettings(
            checksum=sysctl("net.netfilter.nf_conntrack_checksum") != "0",
            tcp_loose=sysctl("net.netfilter.nf_conntrack_tcp_loose") != "0",
            tcp_be_liberal=sysctl("net.netfilter.nf_conntrack_tcp_be_liberal") != "0",
            tcp_ignore_invalid_rst=sysctl("net.netfilter.nf_conntrack_tcp_ignore_invalid_rst") != "0",
            timeouts=timeouts_of(job.node),
        )
        self._nodes: dict[type[PlainWalk | FastWalk], _Node] = {}

    def simulate(self, flow: Flow) -> FlowResult:
        """Return the branches of the flow with exact probabilities; branches with equal outcomes are joined.

        Raises InputError for a flow of another address family than the rules, and for too many branches.
        """
        conversation, node = self._begun(flow), self._node(FastWalk)
        flow = conversation.flow
        # A single packet does not depend on an answer, so it is the same in every run.
        only = conversation.emit(flow.first) if len(flow.steps) == 1 else None
        lists = dependent = False
        filled: frozenset[str] | None = frozenset()

        def run(chooser: Chooser[Checkpoint]) -> tuple[tuple[Outcome, ...], tuple[Assumption, ...]]:
            nonlocal lists, dependent, filled
            node.begin(chooser)
            if only is not None:
                outcomes: tuple[Outcome, ...] = (_sent(only, node, chooser.start)[0],)
            else:
                results = self._steps(conversation.afresh(), node, chooser.start)
                outcomes = tuple([outcome for _, _, outcome in results if outcome is not None])
            if node.memory.keeps_state:
                if node.memory.holds_any:
                    lists, names = True, node.memory.filled
                    filled = None if filled is None or names is None else filled | names
                dependent = dependent or bool(node.memory.counters)
            return outcomes, tuple(chooser.assuming)

        node.memory.ports.guessed = False
        shares_of: dict[tuple[tuple[Outcome, ...], tuple[Assumption, ...]], list[Fraction]] = {}
        for probability, path in _followed(flow, run):
            shares_of.setdefault(path, []).append(probability)
        branches = [
            OutcomeBranch(reduce(add, shares), outcomes, assuming)
            for (outcomes, assuming), shares in shares_of.items()
        ]
        if any(branch.assuming for branch in branches):
            paths = added_up([Run(b.probability, b.assuming, b.outcomes, None) for b in branches])
            branches = [OutcomeBranch(w.probability, w.outcomes, w.assuming) for w in paths]
        return FlowResult(
            flow.id,
            tuple(branches),
            lists=lists,
            filled=filled if lists else None,
            dependent=dependent,
            guessed=node.memory.ports.guessed and len(branches) > 1,
        )

    def trace(self, flow: Flow, *, every_rule: bool = True) -> tuple[TracedBranch, ...]:
        """Return every branch, without joining equal ones, with all of its events.

        Without ``every_rule``, rules that are excluded by the index of their chain are recorded in series
        (:class:`~backends.simulator.trace.RulesSkipped`), which takes far less time in long chains. Of two
        branches that differ only in an assumption that changes no outcome, one is returned, without the
        assumption. Raises InputError as :meth:`simulate` does, and for too many events.
        """
        conversation, node = self._begun(flow), self._node(PlainWalk if every_rule else IndexedWalk)

        def run(chooser: Chooser[Checkpoint]) -> tuple[tuple[TracedStep, ...], tuple[Assumption, ...]]:
            return self._traced(conversation, node, chooser), tuple(chooser.assuming)

        paths = [
            Run(probability, assuming, tuple(s.outcome for s in steps if s.outcome is not None), steps)
            for probability, (steps, assuming) in _followed(flow, run)
        ]
        return tuple(TracedBranch(w.probability, w.result, w.assuming) for w in without_needless(paths))

    def watch(self, flow: Flow, watched: Watched, first: Choices = ()) -> Iterator[TracedBranch]:
        """Yield each branch as soon as it has been followed; its events are the visits of watched rules only.

        A branch is followed only when the caller asks for it, and the one with the choices ``first`` before
        all others. A branch of a flow with a single packet ends, without an outcome, where the packet cannot
        come to a watched rule any more, and branches that differ after that are one. Raises InputError as
        :meth:`trace` does.
        """
        conversation, node = self._begun(flow), self._node(WatchingWalk)
        walk = node.stack.walk
        assert isinstance(walk, WatchingWalk)
        hooks, jumps = self._prepared.hooks_of(watched), walk.jumps

        def run(chooser: Chooser[Checkpoint]) -> tuple[tuple[TracedStep, ...], Chooser[Checkpoint]]:
            # Between two branches, the caller may watch another flow.
            walk.watched, walk.hooks, walk.jumps, walk.single = watched, hooks, jumps, len(flow.steps) == 1
            try:
                steps = self._traced(conversation, node, chooser)
            except WatchedRulesPassed:
                events = node.stack.recorder.take()
                steps = (TracedStep(step=flow.first, emission=None, events=events, outcome=None),)
            return steps, chooser

        for probability, (steps, chooser) in _following(flow, run, first):
            yield TracedBranch(probability, steps, tuple(chooser.assuming), chooser.taken)

    def _traced(
        self, conversation: Conversation, node: _Node, chooser: Chooser[Checkpoint]
    ) -> tuple[TracedStep, ...]:
        """Run one branch of a flow on a node that records events."""
        node.begin(chooser)
        return tuple(
            [
                TracedStep(step=step, emission=emission, events=node.stack.recorder.take(), outcome=outcome)
                for step, emission, outcome in self._steps(conversation.afresh(), node)
            ]
        )

    def _node(self, walk: type[PlainWalk | FastWalk]) -> _Node:
        """Return the node with a walk, ready for another flow."""
        node = self._nodes.get(walk)
        if node is None:
            node = self._nodes[walk] = self._new_node(walk)
        node.stack.recorder.begin_flow()
        node.stack.walk.jumps = Jumps()
        return node

    def _new_node(self, walk: type[PlainWalk | FastWalk]) -> _Node:
        """Return a node, which records events unless its walk is the fast one."""
        chooser: Chooser[Checkpoint] = Chooser()
        ports = Ports(chooser)
        recorder = Recorder(walk is not FastWalk)
        conntrack = Conntrack(self._settings, ports)
        nat = Nat(conntrack, self._router, ports, recorder, self._family)
        lists = RecentLists(self._prepared.recent)
        memory = Memory(
            chooser,
            ports,
            lists,
            Assumptions(chooser),
            HashTables(self._prepared.hashed),
            ConnectionLists(conntrack),
            FilledSets(self._prepared.sets),
            keeps_state=self._prepared.keeps_state,
        )
        walks = FastWalk(memory, chooser) if issubclass(walk, FastWalk) else walk(memory, recorder)
        stack = Stack(self._prepared, self._router, conntrack, nat, walks, recorder, self._links)
        return _Node(stack, memory)

    def _begun(self, flow: Flow) -> Conversation:
        if flow.family is not self._family:
            raise InputError(f"flow {flow.id!r} is not of the family of the rules, {self._family.value}")
        return Conversation(flow if self._now is None else begun_at(flow, int(self._now())))

    def _steps(
        self, conversation: Conversation, node: _Node, start: Checkpoint | None = None
    ) -> Iterator[_StepResult]:
        unknown: Outcome | None = None
        for step in conversation.flow.steps:
            if isinstance(step, Pause):
                node.wait(step.seconds)
                conversation.waited(step.seconds)
                yield step, None, None
                continue
            if unknown is not None:
                yield step, None, unknown
                continue
            emission = conversation.emit(step)
            if emission is None:
                yield step, None, Outcome(verdict=Verdict.UNSENT)
                continue
            outcome, fate = _sent(emission, node, start)
            match fate:
                case Forwarded():
                    conversation.arrived(Arrival(fate.packet, fate.out))
                case Delivered():
                    conversation.arrived(Arrival(fate.packet, None))
                case None:
                    unknown = outcome
            node.stack.first, start = False, None
            yield step, emission, outcome


def _sent(emission: Emission, node: _Node, start: Checkpoint | None = None) -> tuple[Outcome, Fate | None]:
    """Send one packet and return its outcome and its fate, which is None if the rules hide it."""
    fate: Fate | None = None
    try:
        if start is not None:
            fate = node.stack.resume(start)
        elif emission.entry is None:
            fate = node.stack.send(emission.packet)
        else:
            fate = node.stack.receive(emission.packet, emission.entry)
    except Undecided as e:
        why = str(e)
        outcome = Outcome(verdict=Verdict.UNKNOWN, hidden=why)
    else:
        why = _why(fate) if node.stack.recorder.enabled else ""
        outcome = _outcome(emission.packet, fate, node.memory.ports)
    if node.stack.recorder.enabled:
        node.stack.recorder.add(Ended(outcome, why))
    return outcome, fate


def _followed(flow: Flow, run: Callable[[Chooser[Checkpoint]], T]) -> list[tuple[Fraction, T]]:
    return list(_following(flow, run))


def _following(
    flow: Flow, run: Callable[[Chooser[Checkpoint]], T], first: Choices = ()
) -> Iterator[tuple[Fraction, T]]:
    try:
        yield from branches(run, first)
    except TooManyBranches as e:
        raise InputError(
            f"flow {flow.id!r} has more than {e.number} branches: rules draw a random number for each of its"
            f" {len(flow.steps)} steps, or hide too much; make the flow shorter"
        ) from None


def simulate(job: Job, flow: Flow) -> FlowResult:
    """Return every branch of the flow as the kernel would take it; the probabilities sum to 1.

    For many flows, make one :class:`Simulation`. Raises UnsupportedError as it does.
    """
    return Simulation(job).simulate(flow)


def trace(
    job: Job, flow: Flow, *, assuming: bool = False, every_rule: bool = True
) -> tuple[TracedBranch, ...]:
    """Return every branch of the flow with each rule visited and each decision made.

    ``every_rule`` as in :meth:`Simulation.trace`.
    """
    return Simulation(job, assuming=assuming).trace(flow, every_rule=every_rule)


def _why(fate: Fate) -> str:
    match fate:
        case Forwarded():
            return f"left on {fate.out}"
        case Delivered():
            return "delivered to the node"
        case Dropped() | Rejected():
            return fate.why


def _outcome(sent: Packet, fate: Fate, ports: Ports) -> Outcome:
    match fate:
        case Forwarded():
            out: str | None = fate.out
        case Delivered():
            out = None
        case Dropped(error=None):
            return _DROP
        case Dropped(error=kind):
            return Outcome(verdict=Verdict.DROP, reject_with=str(kind))
        case Rejected():
            return Outcome(verdict=Verdict.REJECT, reject_with=fate.kind)
    packet = fate.packet
    shown = sport, dport = _shown_ports(packet, ports)
    before = shown
    if (packet.sport, packet.dport, packet.icmp_id) != (sent.sport, sent.dport, sent.icmp_id):
        before = _shown_ports(sent, ports)
    quoted = None
    if packet.quoted is not None:
        quoted = QuotedTuple(packet.quoted.src, packet.quoted.dst, *_shown_ports(packet.quoted, ports))
    return Outcome.passed(
        out=out,
        packet=packet,
        ports=shown,
        mark=fate.mark,
        dnat=packet.dst != sent.dst or dport != before[1],
        snat=packet.src != sent.src or sport != before[0],
        quoted=quoted,
    )


def _shown_ports(packet: Packet, ports: Ports) -> tuple[Port | None, Port | None]:
    if packet.has_ports:
        if not ports.picked:
            return packet.sport, packet.dport
        return ports.shown(packet.sport), ports.shown(packet.dport)
    return (ports.shown(packet.icmp_id) if packet.is_icmp else None), None
