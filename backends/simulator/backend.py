"""The simulator as a Backend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext

from backends.model.contract import Availability, Job, Session
from backends.model.flow import Flow, Repeated
from backends.model.outcome import FlowResult
from backends.simulator.simulate import Simulation
from backends.simulator.walk.prepare import NAME
from translate.dataclass import replace
from translate.errors import Note

__all__ = ["SimulatorBackend"]


class SimulatorBackend:
    """The reference backend: pure Python, always available."""

    name = NAME

    def probe(self) -> Availability:
        """Return that it is available."""
        return Availability(ok=True)

    def open(self, job: Job) -> AbstractContextManager[Session]:
        """Prepare the job. Raises UnsupportedError if a rule cannot be simulated."""
        return nullcontext(_SimulatorSession(Simulation(job)))


class _SimulatorSession:
    limits: tuple[Note, ...] = ()

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        """Simulate the flows in order, each once: the result has all branches."""
        for item in flows:
            if isinstance(item, Repeated):
                yield replace(self._simulation.simulate(item.flow), runs=item.times)
            else:
                yield self._simulation.simulate(item)
