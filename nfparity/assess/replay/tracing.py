"""The rules on the path of a changed packet before the change, from a trace of the simulator."""

from __future__ import annotations

from backends.model.flow import Flow
from backends.model.outcome import Outcome
from backends.simulator import RuleVisited, Simulation, TracedBranch
from nfparity.assess.difference import Traced
from translate.ir import Rule

__all__ = ["traced"]


def traced(simulation: Simulation, flow: Flow, outcomes: tuple[Outcome, ...], sent: int, step: int) -> Traced:
    """Return the rules on the path with these outcomes."""
    paths = simulation.trace(flow, every_rule=False)
    fitting = (w for w in paths if tuple(s.outcome for s in w.steps if s.outcome is not None) == outcomes)
    path = next(fitting, None)
    if path is None:  # the simulator does not know a rule that applied
        return Traced(())
    return Traced(_matched(path, step), () if sent == step else _matched(path, sent))


def _matched(traced: TracedBranch, step: int) -> tuple[Rule, ...]:
    """Return the rules that applied to a step's packet, including jumps."""
    events = traced.steps[step].events
    return tuple(event.rule for event in events if isinstance(event, RuleVisited) and event.matched)
