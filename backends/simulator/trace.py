"""Events of a packet's path, for explanations and coverage."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Final

from backends.model.conversation import Emission
from backends.model.flow import Step
from backends.model.outcome import Assumption, Outcome
from backends.model.packet import Packet, Tuple
from backends.model.routes import RoutingRule
from backends.simulator.chance.chooser import Choices
from backends.simulator.routing.path import NoRoute, Path
from translate.dataclass import dataclass, field
from translate.errors import InputError
from translate.ir import (
    ConnectionState,
    ConnectionStatus,
    Hook,
    Policy,
    RejectKind,
    Rule,
    TableName,
    Test,
)

__all__ = [
    "AlikeRules",
    "Answered",
    "Bound",
    "Ended",
    "Event",
    "HookEntered",
    "Manip",
    "PolicyApplied",
    "Recorder",
    "Rewritten",
    "Routed",
    "RuleVisited",
    "RulesSkipped",
    "TracedBranch",
    "TracedStep",
    "Tracked",
]


class Manip(StrEnum):
    """The side of a connection that a NAT binding changes (``enum nf_nat_manip_type``)."""

    SOURCE = "source"
    DESTINATION = "destination"


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEntered:
    """The packet reached a hook. ``iif`` and ``oif`` are empty if the hook does not have them.

    ``answer``: it is the node's error or RST about the packet.
    """

    hook: Hook
    packet: Packet
    mark: int
    iif: str
    oif: str
    answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVisited:
    """A rule was visited. ``failed`` is the first test that did not hold, None if the rule matched.

    It is an Assumption if all known tests hold and a hidden one is assumed not to. ``index`` counts the
    chain's rules from 1, as ``iptables -L --line-numbers`` does. ``mark`` is the packet's mark after the
    rule. ``dropped``: the failed test drops the packet (``par->hotdrop``), or the target does so because the
    packet lacks a header.
    """

    table: TableName
    hook: Hook
    chain: str
    index: int
    rule: Rule
    failed: Test | Assumption | None
    mark: int
    answer: bool = False
    dropped: bool = False

    @property
    def matched(self) -> bool:
        """True if all tests of the rule held."""
        return self.failed is None


@dataclass(frozen=True, slots=True, eq=False)
class AlikeRules:
    """Rules of one chain that differ only in the test by which they are indexed.

    ``positions`` are indices of rules, from 0 and ascending. ``side`` is the index of that test in each rule;
    ``before`` and ``behind`` are the tests before and after it, which all of the rules share.
    """

    positions: tuple[int, ...]
    side: int
    before: tuple[Test, ...]
    behind: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RulesSkipped:
    """Consecutive rules of a chain were skipped, because its index shows that none of them matches.

    ``first`` and ``last`` count the chain's rules from 1. ``failed`` pairs each group of alike rules of the
    whole chain with the position of their first test that fails. ``mark`` is the packet's mark.
    """

    table: TableName
    hook: Hook
    chain: str
    first: int
    last: int
    failed: tuple[tuple[AlikeRules, int], ...]
    mark: int
    answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyApplied:
    """The walk left a built-in chain undecided: the policy decided."""

    table: TableName
    hook: Hook
    policy: Policy
    answer: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracked:
    """Conntrack set the packet's state; tuples are None without an entry."""

    state: ConnectionState
    original: Tuple | None
    reply: Tuple | None
    status: ConnectionStatus
    direction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """NAT bound one side of a connection. ``null``: no rule decided the binding."""

    hook: Hook
    manip: Manip
    original: Tuple
    reply: Tuple
    null: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A NAT binding changed the packet's headers."""

    hook: Hook
    before: Packet
    after: Packet


@dataclass(frozen=True, slots=True)
class Routed:
    """A routing decision, or the reason why there is no route. ``why`` names the occasion.

    ``rule`` is the routing rule that decided; None if the node has only the default rules, or if no rule did.
    """

    why: str
    dst: int
    path: Path | NoRoute
    rule: RoutingRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The node answered with an error or RST; ``packet`` is None if none is due, or it has no route."""

    kind: RejectKind | str
    packet: Packet | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The packet reached its end, for the reason ``why``."""

    outcome: Outcome
    why: str


Event = (
    HookEntered
    | RuleVisited
    | RulesSkipped
    | PolicyApplied
    | Tracked
    | Bound
    | Rewritten
    | Routed
    | Answered
    | Ended
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedStep:
    """A step of the flow, its packet (None if nothing was sent) and the events in order."""

    step: Step
    emission: Emission | None
    events: tuple[Event, ...]
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class TracedBranch:
    """One branch of the flow, with its probability and all of its events.

    ``assuming`` as in :class:`~backends.model.outcome.OutcomeBranch`. ``choices``, of a branch that was
    watched, identify it among the branches of its flow.
    """

    probability: Fraction
    steps: tuple[TracedStep, ...]
    assuming: tuple[Assumption, ...] = ()
    choices: Choices = ()


_MOST_EVENTS: Final = 5_000_000
"""The limit for all branches of a trace; an event takes a few hundred bytes."""


@dataclass(slots=True)
class Recorder:
    """Collects events; ``answer`` is true while an answer of the node is on its path."""

    enabled: bool
    answer: bool = False
    _count: int = 0
    """The number of events of all runs of the flow."""
    _events: list[Event] = field(default_factory=list)

    def begin_flow(self) -> None:
        """Forget the number of events, for another flow."""
        self._count = 0

    def begin(self) -> None:
        """Forget all events, for another run."""
        self.answer = False
        self._events.clear()

    def add(self, event: Event) -> None:
        """Record an event, if enabled. Raises InputError if there are too many."""
        if not self.enabled:
            return
        self._count += 1
        if self._count > _MOST_EVENTS:
            raise InputError(
                f"the flow has more than {_MOST_EVENTS} events on its branches, too many to show"
            )
        self._events.append(event)

    def take(self) -> tuple[Event, ...]:
        """Return the events since the last call."""
        events = tuple(self._events)
        self._events.clear()
        return events
