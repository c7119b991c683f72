"""Rules that a corpus hits, by the counters of iptables-legacy on the real kernel."""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.simulator import Simulation
from harness.corpus.reachability import RuleId
from harness.diff.sampling import CERTAIN
from translate.errors import MachineError

__all__ = ["count_in_kernel"]


def count_in_kernel(job: Job, flows: Iterable[Flow]) -> dict[RuleId, tuple[int, int | None]]:
    """Return for each rule whether iptables-legacy counted it; MachineError when it cannot run here.

    Flows with random outcomes run until each outcome has been seen, so the counts are not comparable.
    """
    from backends.iptables.backend import IptablesBackend

    backend = IptablesBackend("iptables-legacy")
    availability = backend.probe()
    if not availability.ok:
        raise MachineError(f"iptables-legacy cannot run here: {availability.reason}")
    simulation = Simulation(job)
    with backend.open(job) as session:
        for _ in session.replay(CERTAIN.with_first_runs(flow, simulation.simulate(flow)) for flow in flows):
            pass
        return {key: (min(packets, 1), None) for key, packets in session.counters().items()}
