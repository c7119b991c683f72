"""The outcomes of packets: verdict, addresses and ports, and exact probabilities."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Final

from backends.model.packet import Address, Packet, Port
from translate.dataclass import dataclass, field, replace
from translate.ir import TcpFlag

__all__ = [
    "SYN_ACK",
    "Assumption",
    "FlowResult",
    "Outcome",
    "OutcomeBranch",
    "QuotedTuple",
    "Verdict",
    "seen_branches",
]

_ONE: Final = Fraction(1)
_SYN: Final = int(TcpFlag.SYN)


SYN_ACK: Final = "syn-ack"
"""The ``reject_with`` of a SYN that SYNPROXY answers."""


class Verdict(StrEnum):
    """The end of a packet's path."""

    FORWARD = "forward"
    """The packet left the node on interface ``out`` (also if it was made on the node)."""
    LOCAL = "local"
    """The packet was delivered to the node itself."""
    DROP = "drop"
    """The packet was dropped silently."""
    REJECT = "reject"
    """The packet was dropped; its sender got the answer ``reject_with``: an ICMP error, a RST or a SYN with
    ACK."""
    UNSENT = "unsent"
    """The packet was not sent, because the packet that it answers did not come out."""
    UNKNOWN = "unknown"
    """The fate depends on parts of the rules that the input hides; ``hidden`` names them."""


@dataclass(frozen=True, slots=True)
class QuotedTuple:
    """The packet inside an ICMP error, as it looked when the error arrived."""

    src: Address
    dst: Address
    sport: Port | None
    dport: Port | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one packet, in terms that are the same for all backends.

    For ``forward`` and ``local``: addresses, ports (``sport`` is the identifier of an ICMP query, ``dport``
    None), ttl, tos, mark and the MSS option of a SYN as the packet left or was delivered. ``dnat``/``snat``:
    the destination/source differs from that of the sent packet. For ``drop``, ``reject`` and ``unsent`` these
    are None or False. ``reject_with`` uses the spelling of :class:`RejectKind`; other ICMP errors of the
    stack itself are ``icmp-<type>-<code>`` (``icmp-11-0``), those of ICMPv6 ``icmp6-<type>-<code>``
    (``icmp6-3-0``). A ``drop`` of an IPv4 packet without a route has the error that the rules drop. If a
    replay cannot tell whether the kernel has left this error out, the verdict is ``unknown``
    (:mod:`harness.diff.leftout`). After a packet whose verdict is ``unknown`` in the simulator, all later
    packets of its flow are ``unknown``.

    The fields are in the order of the JSON form, which omits default values, except the booleans of a packet
    that arrived. A new field is sent between processes, written, read and compared by its type alone
    (``tests/unit/harness/test_new_field.py``).
    """

    verdict: Verdict
    reject_with: str | None = None
    hidden: str | None = None
    out: str | None = None
    src: Address | None = None
    dst: Address | None = None
    sport: Port | None = None
    dport: Port | None = None
    ttl: Annotated[int, range(1 << 8)] | None = None
    tos: Annotated[int, range(1 << 8)] = 0
    dnat: bool = False
    snat: bool = False
    mark: Annotated[int, range(1 << 32)] | None = None
    mss: Annotated[int, range(1 << 16)] | None = None
    quoted: QuotedTuple | None = None

    @staticmethod
    def passed(
        *,
        out: str | None,
        packet: Packet,
        ports: tuple[Port | None, Port | None],
        mark: int | None,
        dnat: bool,
        snat: bool,
        quoted: QuotedTuple | None,
    ) -> Outcome:
        """Return the outcome of a packet that left on ``out``, or was delivered if that is None.

        ``ports`` are the packet's ports in the form of outcomes.
        """
        return replace(
            _DELIVERED if out is None else _FORWARDED,
            out=out,
            src=packet.src,
            dst=packet.dst,
            sport=ports[0],
            dport=ports[1],
            ttl=packet.ttl,
            tos=packet.tos,
            dnat=dnat,
            snat=snat,
            mark=mark,
            mss=packet.mss if packet.mss is not None and packet.flags & _SYN else None,
            quoted=quoted,
        )


_DELIVERED: Final = Outcome(verdict=Verdict.LOCAL)
_FORWARDED: Final = Outcome(verdict=Verdict.FORWARD)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One of two assumptions about the hidden part of a rule; ``hidden`` describes that part.

    ``matches``: whether the rule matches the packet; ``packet`` has the values that the hidden part may test
    ("in eth0"). For hidden rules, ``matches``: whether they have any effect on the flow's packets; ``packet``
    is then empty.
    """

    line: int
    hidden: tuple[str, ...]
    matches: bool
    packet: str = ""

    def __str__(self) -> str:
        why = "; ".join(self.hidden)
        if not self.packet:
            return f"the hidden part {'decides' if self.matches else 'changes nothing'} — {why}"
        verb = "matches" if self.matches else "does not match"
        return f"line {self.line} {verb} {self.packet} — {why}"


@dataclass(frozen=True, slots=True)
class OutcomeBranch:
    """One possible course of a flow: an outcome per step (pauses have none), and its exact probability.

    If rules have hidden parts, the probability is that under the assumptions of ``assuming``.
    """

    probability: Fraction
    outcomes: tuple[Outcome, ...]
    assuming: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True)
class FlowResult:
    """The result of a flow on one backend.

    The simulator returns every branch, and the probabilities sum to 1. (If rules have hidden parts, the
    probabilities of all branches whose assumptions are true sum to 1.) A kernel backend returns the branches
    that it observed in ``runs`` runs, each with its share; ``seconds`` is the duration of the runs.

    ``notes``: observations of the backend, such as a frame with a wrong checksum or a stray frame; each is a
    separate difference. ``rarest``: the probability of the least likely branch, if only the backend knows it.
    ``lists``: rules keep addresses after the flow has ended (``-m recent``) or have taken from a bucket (``-m
    limit``). ``filled``: the names of these lists of ``-m recent``, if nothing else is kept; None if that is
    not known. ``dependent``: a run affects the next run, because rules count packets (``-m statistic --mode
    nth``) or choose by their hash. ``guessed``: the probabilities depend on the version of the kernel.
    ``settled``: a kernel backend has seen that the packets met no rule that chooses at random or has state.
    """

    flow_id: str
    branches: tuple[OutcomeBranch, ...]
    notes: tuple[str, ...] = ()
    runs: int = 1
    rarest: Fraction = _ONE
    lists: bool = False
    filled: frozenset[str] | None = field(default=None, compare=False)
    dependent: bool = False
    guessed: bool = False
    settled: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_open(self) -> bool:
        """Return whether the fate of the flow is unknown: a part of the rules is hidden or not modelled."""
        return any(
            branch.assuming or any(outcome.verdict is Verdict.UNKNOWN for outcome in branch.outcomes)
            for branch in self.branches
        )

    def joined(self, other: FlowResult) -> FlowResult:
        """Return the joint result of this and more runs of the same flow through the same rules."""
        runs = self.runs + other.runs
        shares: dict[tuple[Outcome, ...], Fraction] = {}
        for result in (self, other):
            for branch in result.branches:
                share = branch.probability * result.runs / runs
                shares[branch.outcomes] = shares.get(branch.outcomes, Fraction(0)) + share
        return replace(
            self,
            branches=tuple(OutcomeBranch(share, outcomes) for outcomes, share in shares.items()),
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
            runs=runs,
            rarest=min(self.rarest, other.rarest),
            lists=self.lists or other.lists,
            dependent=self.dependent or other.dependent,
            guessed=self.guessed or other.guessed,
            settled=self.settled and other.settled,
            seconds=self.seconds + other.seconds,
        )


def seen_branches(counts: Counter[tuple[Outcome, ...]]) -> tuple[OutcomeBranch, ...]:
    """Return the observed branches of a flow, each with its share of all runs."""
    runs = counts.total()
    return tuple(OutcomeBranch(Fraction(n, runs), outcomes) for outcomes, n in counts.items())
