"""A difference that was seen, and what a detector says of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Outcome
from backends.model.packet import Packet
from nfparity.assess.ends import End, end_of
from nfparity.assess.facts import Facts
from nfparity.kubeproxy.service import Line
from translate.ir import Origin, Rule

__all__ = ["Claim", "Detector", "Evidence", "Measure", "Measured", "Seen", "Traced", "evidence"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the dump, and how many packets it has counted; None without counters."""

    origin: Origin
    packets: int | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """Rules that applied to a step's packet, and to its connection's first one where that is another."""

    met: tuple[Rule, ...]
    began: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One packet of a flow that ends otherwise then than today.

    ``packet`` and ``entry`` are those of the connection's first packet, ``step`` is the index of the
    step that differs. ``fields`` names what of the outcome differs. Where a whole flow was measured, it is
    ``("measure",)``, and ``told`` says what came of it. ``instead`` says what happens then where ``then``
    cannot, because nothing does. ``tracing`` finds today's rules when they are asked
    for: a walk through every rule on the way, which most detectors can do without.
    """

    flow: Flow
    step: int
    packet: Packet
    entry: str | None
    today: Outcome
    then: Outcome
    fields: tuple[str, ...] = ()
    told: str = ""
    instead: str = ""
    tracing: Callable[[], Traced] | None = field(default=None, compare=False, repr=False)

    @property
    def met(self) -> tuple[Rule, ...]:
        """Today's rules that applied to the step's packet, in order, jumps too."""
        return () if self.tracing is None else self.tracing().met

    @property
    def began(self) -> tuple[Rule, ...]:
        """Today's rules that applied to the connection's first packet, where that is another."""
        return () if self.tracing is None else self.tracing().began

    def without_tracing(self) -> Seen:
        """Return what can be kept, and sent elsewhere, once a detector has claimed it."""
        return replace(self, tracing=None)

    @property
    def today_end(self) -> End:
        """Where it ends today."""
        return end_of(self.today)

    @property
    def then_end(self) -> End:
        """Where it will end."""
        return end_of(self.then)

    @property
    def measured(self) -> bool:
        """Whether a whole flow was measured."""
        return self.fields == ("measure",)

    def met_any(self, origins: Iterable[Origin]) -> bool:
        """Whether one of these lines of the dump applied to it today."""
        wanted = {origin.line for origin in origins}
        return any(rule.origin.line in wanted for rule in self.met)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a detector says of a difference: it is of its kind, of this service, because of these lines.

    ``subject`` is the service by name, or what else it is about; ``counted`` False: no rule of the dump
    counts such packets, so that nothing says whether there are any.
    """

    subject: str
    lines: tuple[Evidence, ...] = ()
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """How a whole flow of sends differs: by one of them (an index) with its ends, and in words if need be."""

    step: int
    today: Outcome
    then: Outcome
    told: str = ""


Measure = Callable[[Facts, Flow, FlowResult, FlowResult], Measured | None]
"""Compares what a whole flow came to, today and then; says the difference, or None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """One difference of the catalogue: packets that would show it, and whether one is of its kind.

    ``measure`` is for flows too random to be compared packet by packet; they are not simulated. With
    ``late`` the witnesses go through the rules that stay as registered after kube-proxy's, which happens
    when the node restarts.
    """

    k: str
    witnesses: Callable[[Facts], Iterable[Flow]]
    claims: Callable[[Facts, Seen], Claim | None]
    measure: Measure | None = None
    late: bool = False


def evidence(lines: Iterable[Line | Rule]) -> tuple[Evidence, ...]:
    """Return the lines of the dump behind kube-proxy's records, or behind rules."""
    found: dict[Origin, Evidence] = {}
    for one in lines:
        if isinstance(one, Line):
            found[one.origin] = Evidence(one.origin, one.packets)
        else:
            counted = None if one.counters is None else one.counters.packets
            found[one.origin] = Evidence(one.origin, counted)
    return tuple(found.values())
