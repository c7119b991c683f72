"""A backend that runs rules of its own in the simulator, and counts the runs of each flow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

from backends.model.contract import Availability, Job, Session
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult
from backends.simulator import Simulation
from translate.ir import Ruleset

__all__ = ["CountingBackend"]


@dataclass
class CountingBackend:
    """A side that runs rules of its own in the simulator, and counts the runs of each flow."""

    ruleset: Ruleset
    name: str = "counting"
    runs: Counter[str] = field(default_factory=Counter, compare=False)

    def probe(self) -> Availability:
        return Availability(ok=True)

    @contextmanager
    def _open(self, job: Job) -> Iterator[Session]:
        simulation = Simulation(replace(job, rules=self.ruleset))

        @dataclass
        class Replaying:
            side: CountingBackend
            limits: tuple[()] = ()

            def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
                for request in flows:
                    repeated = request if isinstance(request, Repeated) else Repeated(request, 1)
                    flow, times = repeated.flow, repeated.times
                    self.side.runs[flow.id] += times
                    yield replace(simulation.simulate(flow), runs=times)

        yield Replaying(self)

    def open(self, job: Job) -> AbstractContextManager[Session]:
        return self._open(job)
