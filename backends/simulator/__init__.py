"""The reference: what the kernel would do, in pure Python, as a set of outcomes.

Imports ``translate.ir`` and the words of ``backends`` alone; it reads the Ruleset as written and
never sees a lowered Program, so that an error of lowering cannot hide on both sides of a diff.
``harness`` imports what is named here; the modules inside follow the kernel's own division:
``routing``, ``conntrack`` (with ``tcp`` and ``tcpstates``), ``nat``, ``evaluate`` (with
``conditions``; ``index`` leaves out rules that cannot match, ``chainmemo`` walks that were made before),
``recent``, ``reject``, ``stack``; ``chooser`` and ``checkpoint`` are how every way of a flow is found.
"""

from backends.simulator.backend import SimulatorBackend
from backends.simulator.routing import NoRoute, Path
from backends.simulator.simulate import Simulation, simulate, trace
from backends.simulator.trace import (
    Answered,
    Bound,
    Ended,
    Event,
    HookEntered,
    Manip,
    PolicyApplied,
    Rewritten,
    Routed,
    RuleVisited,
    TracedBranch,
    TracedStep,
    Tracked,
)

__all__ = [
    "Answered",
    "Bound",
    "Ended",
    "Event",
    "HookEntered",
    "Manip",
    "NoRoute",
    "Path",
    "PolicyApplied",
    "Rewritten",
    "Routed",
    "RuleVisited",
    "Simulation",
    "SimulatorBackend",
    "TracedBranch",
    "TracedStep",
    "Tracked",
    "simulate",
    "trace",
]
