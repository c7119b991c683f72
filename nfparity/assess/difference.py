"""One packet whose fate differs between the iptables and nftables modes, and the detectors that claim it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from backends.model.flow import Flow
from backends.model.outcome import FlowResult, Outcome
from backends.model.packet import Packet
from nfparity.assess.fate import Fate, fate_of
from nfparity.assess.node.facts import Facts
from nfparity.kubeproxy.service import Line
from translate.dataclass import dataclass, field, replace
from translate.ir import Origin, Rule

__all__ = ["ChangedPacket", "Claim", "Detector", "Evidence", "Measure", "Measured", "Traced", "evidence"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A line of the dump and its packet counter; None without counters."""

    origin: Origin
    packets: int | None = None


@dataclass(frozen=True, slots=True)
class Traced:
    """The rules that applied to a step's packet, and to the connection's first packet if that is earlier."""

    matched: tuple[Rule, ...]
    began: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPacket:
    """One packet of a flow whose outcome differs between the two modes.

    ``packet`` and ``entry`` are those of the connection's first packet; ``step`` is the index of the
    step that differs, and ``fields`` names the fields of the outcome that differ. If a whole flow was
    measured, ``fields`` is ``("measure",)`` and ``description`` is the result in words. ``instead`` is the
    result after the change in words, if no outcome was observed. ``tracing`` finds the iptables rules on
    demand, because the walk through every rule is slow and most detectors do not need it.
    """

    flow: Flow
    step: int
    packet: Packet
    entry: str | None
    before: Outcome
    after: Outcome
    fields: tuple[str, ...] = ()
    description: str = ""
    instead: str = ""
    tracing: Callable[[], Traced] | None = field(default=None, compare=False, repr=False)

    @property
    def matched(self) -> tuple[Rule, ...]:
        """The iptables rules that applied to the step's packet, in order, including jumps."""
        return () if self.tracing is None else self.tracing().matched

    @property
    def began(self) -> tuple[Rule, ...]:
        """The iptables rules that applied to the connection's first packet, if that is an earlier one."""
        return () if self.tracing is None else self.tracing().began

    def without_tracing(self) -> ChangedPacket:
        """Return a copy that can be pickled."""
        return replace(self, tracing=None)

    @property
    def fate_before(self) -> Fate:
        """The fate in iptables mode."""
        return fate_of(self.before)

    @property
    def fate_after(self) -> Fate:
        """The fate in nftables mode."""
        return fate_of(self.after)

    @property
    def measured(self) -> bool:
        """True if a whole flow was measured."""
        return self.fields == ("measure",)

    def matched_any(self, origins: Iterable[Origin]) -> bool:
        """Return whether a rule on one of these lines applied to the packet in iptables mode."""
        wanted = {origin.line for origin in origins}
        return any(rule.origin.line in wanted for rule in self.matched)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A detector's claim: this changed packet shows its difference, for this subject, through these lines.

    ``subject`` is the name of the affected service or other object. ``counted`` False: no rule of the
    dump counts such packets, so it is unknown whether there are any.
    """

    subject: str
    lines: tuple[Evidence, ...] = ()
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A step of a flow that differs, with both outcomes and, if they do not suffice, a description."""

    step: int
    before: Outcome
    after: Outcome
    description: str = ""


Measure = Callable[[Facts, Flow, FlowResult, FlowResult], Measured | None]
"""A function that compares the results of a whole flow, before and after; returns the difference or None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """The detector of one difference: ``flows`` makes flows that would show it, ``claims`` recognises it.

    ``measure`` is for flows that are too random to compare packet by packet; they are not simulated. With
    ``late``
    the flows also run with the other rules registered after kube-proxy's, as after a restart of the node.
    """

    k: str
    flows: Callable[[Facts], Iterable[Flow]]
    claims: Callable[[Facts, ChangedPacket], Claim | None]
    measure: Measure | None = None
    late: bool = False


def evidence(lines: Iterable[Line | Rule]) -> tuple[Evidence, ...]:
    """Return the lines of the dump, with counters, of kube-proxy's records or of rules."""
    by_origin: dict[Origin, Evidence] = {}
    for line in lines:
        if isinstance(line, Line):
            by_origin[line.origin] = Evidence(line.origin, line.packets)
        else:
            counted = None if line.counters is None else line.counters.packets
            by_origin[line.origin] = Evidence(line.origin, counted)
    return tuple(by_origin.values())
