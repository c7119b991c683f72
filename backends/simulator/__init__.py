"""The reference: the kernel's treatment of packets, modelled in pure Python, with all possible outcomes.

It imports only ``translate.ir`` and ``backends.model``. It reads the Ruleset as written and never sees a
lowered Program, so that an error of lowering cannot hide on both sides of a comparison. Other packages import
the names exported here. The subpackages follow the kernel's own division: ``hooks`` (the packet's path, and
the node's answers), ``routing``, ``conntrack``, ``nat``, ``matching`` (the tests of rules) and ``walk``
(chains): ``walk.plain`` defines the result, ``walk.fast`` gives the same with less work. ``chance`` finds all
branches of a flow, and ``simulate`` runs them.
"""

from backends.simulator.backend import SimulatorBackend
from backends.simulator.chance.chooser import Choices
from backends.simulator.routing.path import NoRoute, Path
from backends.simulator.simulate import Simulation, simulate, trace
from backends.simulator.trace import (
    AlikeRules,
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
from backends.simulator.walk.watching import Watched

__all__ = [
    "AlikeRules",
    "Answered",
    "Bound",
    "Choices",
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
    "Watched",
    "simulate",
    "trace",
]
