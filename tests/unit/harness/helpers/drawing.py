"""Rules with faults, and a backend with random outcomes, on which a report must not depend."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from backends.model.contract import Availability, Job
from backends.model.flow import Flow, Repeated, Send
from backends.model.outcome import FlowResult, Outcome, seen_branches
from backends.model.packet import Port, PortClass
from backends.simulator import Simulation
from translate.ir import Ruleset
from translate.read import read_ruleset

__all__ = ["DrawingBackend", "faulty"]

_FAULTS: Final = (
    (r"--to-destination (\d+\.\d+)\.\d+\.\d+", r"--to-destination \1.99.99"),
    (r"--random-fully", ""),
    (r"-j MASQUERADE.*", "-j SNAT --to-source 10.9.9.9 --random"),
    (r"^((?!.* -p ).*)-j MASQUERADE.*", r"\1-p tcp -j MASQUERADE --to-ports 30000-50000 --random"),
    (r"-j DNAT .*", "-j MASQUERADE --random-fully"),
    (r"-j KUBE-SEP-\w+", "-j RETURN"),
    (r"-j KUBE-MARK-MASQ", "-j RETURN"),
    (r"--probability 0\.\d+", "--probability 0.10000000009"),
    (r"--set-xmark 0x(\d+)", r"--set-xmark 0x2\1"),
    (r"-j (?:DROP|REJECT).*", "-j ACCEPT"),
)


def faulty(text: str, seed: int, *, faults: int = 4) -> Ruleset:
    """Return the rules of a dump with some of them changed at random; the same seed gives the same
    changes.
    """
    draw = random.Random(seed)
    lines = text.splitlines()
    for _ in range(faults):
        pattern, instead = draw.choice(_FAULTS)
        place = draw.choice([n for n, line in enumerate(lines) if re.search(pattern, line)] or [0])
        changed = [*lines[:place], re.sub(pattern, instead, lines[place]), *lines[place + 1 :]]
        if "-j MASQUERADE" not in changed[place] or "POSTROUTING" in changed[place]:
            lines = changed
    return read_ruleset("\n".join((*lines, "")).encode(), name="faulty")


@dataclass
class DrawingBackend:
    """A backend that draws one of the simulator's branches for each run, and the picked ports.

    Of eight picks one falls on a port that was sent, if it may: on a kernel one in thousands does.
    ``known`` may be shared by backends of the same rules, and saves them the simulation.
    """

    ruleset: Ruleset
    seed: int
    name: str = "drawing"
    known: dict[Flow, FlowResult] = field(default_factory=dict)

    def probe(self) -> Availability:
        return Availability(True)

    @contextmanager
    def open(self, job: Job) -> Iterator[DrawingBackend]:
        self._draw = random.Random(self.seed)
        self._simulation = Simulation(replace(job, rules=self.ruleset))
        yield self

    @property
    def limits(self) -> tuple[()]:
        return ()

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        for request in flows:
            flow, times = (request.flow, request.times) if isinstance(request, Repeated) else (request, 1)
            if flow not in self.known:
                self.known[flow] = self._simulation.simulate(flow)
            result = self.known[flow]
            odds = [float(branch.probability) for branch in result.branches]
            ways = self._draw.choices(result.branches, odds, k=times)
            counts = Counter(self._run(flow, way.outcomes) for way in ways)
            rarest = min(branch.probability for branch in result.branches)
            yield replace(result, branches=seen_branches(counts), runs=times, rarest=rarest)

    def _run(self, flow: Flow, outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
        sent = [step.packet.sport for step in flow.steps if isinstance(step, Send)]
        drawn: dict[PortClass, int] = {}

        def number(port: Port | None) -> Port | None:
            if not isinstance(port, PortClass):
                return port
            if port not in drawn:
                inside = [p for p in sent if isinstance(p, int) and p in port]
                falls = inside and not self._draw.randrange(8)
                drawn[port] = self._draw.choice(inside) if falls else self._draw.randint(port.low, port.high)
            return drawn[port]

        observed = []
        for outcome in outcomes:
            quoted = outcome.quoted
            if quoted is not None:
                quoted = replace(quoted, sport=number(quoted.sport), dport=number(quoted.dport))
            sport, dport = number(outcome.sport), number(outcome.dport)
            observed.append(replace(outcome, sport=sport, dport=dport, quoted=quoted))
        return tuple(observed)
