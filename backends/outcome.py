"""What became of a packet: where it went, how it looked there, and with what probability."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from backends.packet import Packet, Port

__all__ = ["Assumption", "FlowResult", "Outcome", "OutcomeBranch", "QuotedTuple", "Verdict"]


class Verdict(StrEnum):
    """Where a packet ended."""

    FORWARD = "forward"
    """It left the node on interface ``out`` (also packets made on the node)."""
    LOCAL = "local"
    """It was delivered to the node itself."""
    DROP = "drop"
    """It ended without a trace."""
    REJECT = "reject"
    """It ended, and its sender was told so; ``reject_with`` says how."""
    UNSENT = "unsent"
    """It was never sent, because the packet that it would have answered did not come out."""
    UNKNOWN = "unknown"
    """The rules as given hide what becomes of it; ``hidden`` says where."""


@dataclass(frozen=True, slots=True)
class QuotedTuple:
    """The packet inside an ICMP error, as it looked when the error arrived."""

    src: int
    dst: int
    sport: Port | None
    dport: Port | None


@dataclass(frozen=True, kw_only=True)  # without slots: see passed
class Outcome:
    """What became of one packet, in the terms in which all backends can be compared.

    For ``forward`` and ``local``: addresses, ports (``sport`` is the identifier of an ICMP query,
    ``dport`` None), ttl and mark as the packet left or was delivered. ``dnat``/``snat`` say that
    the destination/source differs from what was sent. For ``drop``, ``reject`` and ``unsent``
    these are None, and False. ``reject_with`` uses the spelling of :class:`RejectKind`; other
    ICMP errors that the stack itself answers are ``icmp-<type>-<code>`` (``icmp-11-0``), those of
    ICMPv6 ``icmp6-<type>-<code>`` (``icmp6-3-0``). After a packet whose end is ``unknown``, so is that
    of all further ones of its flow.
    """

    verdict: Verdict
    out: str | None = None
    src: int | None = None
    dst: int | None = None
    sport: Port | None = None
    dport: Port | None = None
    ttl: int | None = None
    mark: int | None = None
    dnat: bool = False
    snat: bool = False
    reject_with: str | None = None
    quoted: QuotedTuple | None = None
    hidden: str | None = None

    def changed(self, **fields: object) -> Outcome:
        """Return a copy with some fields replaced, in less time than a new one takes."""
        copy = object.__new__(Outcome)
        copy.__dict__.update(self.__dict__, **fields)
        return copy

    @classmethod
    def passed(
        cls,
        *,
        out: str | None,
        packet: Packet,
        ports: tuple[Port | None, Port | None],
        mark: int,
        dnat: bool,
        snat: bool,
        quoted: QuotedTuple | None,
    ) -> Outcome:
        """Return the outcome of a packet that left on ``out``, or was delivered when that is None.

        ``ports`` are its own as outcomes show them. As the constructor does, in a fraction of its time:
        every way that a flow can go ends with one of these.
        """
        made = object.__new__(cls)
        fields = {
            "verdict": Verdict.LOCAL if out is None else Verdict.FORWARD,
            "out": out,
            "src": packet.src,
            "dst": packet.dst,
            "sport": ports[0],
            "dport": ports[1],
            "ttl": packet.ttl,
            "mark": mark,
            "dnat": dnat,
            "snat": snat,
            "reject_with": None,
            "quoted": quoted,
            "hidden": None,
        }
        object.__setattr__(made, "__dict__", fields)
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One of two answers to what an input hides of a rule; ``hidden`` says what that is.

    ``matches`` says whether the rule applies to the packet, of which ``packet`` gives what the hidden
    part may ask about ("in eth0"). Where whole rules are hidden, it says whether they do anything at
    all to the flow's packets; ``packet`` is then empty.
    """

    line: int
    hidden: tuple[str, ...]
    matches: bool
    packet: str = ""

    def __str__(self) -> str:
        why = "; ".join(self.hidden)
        if not self.packet:
            return f"what is hidden {'decides' if self.matches else 'changes nothing'} — {why}"
        verb = "matches" if self.matches else "does not match"
        return f"line {self.line} {verb} {self.packet} — {why}"


@dataclass(frozen=True, slots=True)
class OutcomeBranch:
    """One way a flow can go: an outcome per step (pauses have none), and its exact probability.

    Where the rules hide something, the probability is that where what is ``assuming`` holds.
    """

    probability: Fraction
    outcomes: tuple[Outcome, ...]
    assuming: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowResult:
    """What became of a flow.

    The simulator returns every branch, probabilities summing to 1 (where rules hide something: those
    of the branches that hold, in whichever way it is filled in); a kernel backend returns the one
    branch that it saw, with probability 1. ``notes`` hold what a backend wants said about it:
    a frame with a wrong checksum, a stray frame (each is a difference of its own). Probabilities are
    ``guessed`` where it depends on the kernel's version how likely the branches are.
    """

    flow_id: str
    branches: tuple[OutcomeBranch, ...]
    notes: tuple[str, ...] = ()
    guessed: bool = False
