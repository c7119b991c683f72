"""The reference: the kernel's treatment of packets in pure Python, as a set of outcomes.

It imports ``translate.ir`` and ``backends.model`` alone. It reads the Ruleset as written and never sees a
lowered Program, so that an error of lowering cannot hide on both sides of a comparison. Other packages
import the names exported here. The modules follow the kernel's own division: ``stack`` (hooks and
delivery), ``routing``, ``conntrack`` (with ``tcp`` and ``tcpstates``), ``nat``, ``reject``, ``recent``.
Rules are evaluated by ``plain``, the walk that defines the result, and by ``fast``, which gives the same
result with less work. ``chooser`` finds all branches of a flow.
"""

from backends.simulator.backend import SimulatorBackend
from backends.simulator.index import AlikeRules
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
    RulesSkipped,
    RuleVisited,
    TracedBranch,
    TracedStep,
    Tracked,
)

__all__ = [
    "AlikeRules",
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
    "RulesSkipped",
    "Simulation",
    "SimulatorBackend",
    "TracedBranch",
    "TracedStep",
    "Tracked",
    "simulate",
    "trace",
]
