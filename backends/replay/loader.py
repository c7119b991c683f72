"""The part that each kernel backend supplies: a way to load its rules into the TAP node."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from backends.model.packet import Packet
from backends.testbed.suppress_stack_rst import ResetFallback
from backends.testbed.tapnode import TapNode
from translate.dataclass import dataclass
from translate.errors import MachineError, Refusal, UnsupportedError
from translate.ir import Family, Ruleset, longest_walk

__all__ = ["JIFFIES", "Loader", "RuleId", "Watched", "refuse_endless_walks"]

_CLOCK_MONOTONIC_COARSE: Final = 6  # linux/time.h; it counts jiffies

JIFFIES: Final = 3 * time.clock_getres(_CLOCK_MONOTONIC_COARSE)
"""Three jiffies in seconds. ``nf_conncount`` removes closed connections at most once in a jiffy."""

RuleId = tuple[str, str, int]
"""Table, chain, and index in the chain, from 0."""


@dataclass(frozen=True, slots=True)
class Watched:
    """Observations of packets: the probability of their least likely random path, and notes.

    ``lists``: one of the rules fills a list of addresses; ``dependent`` and ``settled`` are as in a
    FlowResult.
    """

    rarest: Fraction = Fraction(1)
    lists: bool = False
    dependent: bool = False
    settled: bool = False


_MOST_RULES: Final = 100_000_000
"""The greatest number of rules that one packet may meet.

The kernel evaluates some 50 million rules a second, and the processor does nothing else meanwhile.
"""


def refuse_endless_walks(ruleset: Ruleset, backend: str) -> None:
    """Raise UnsupportedError for rules with which one packet could keep a processor busy."""
    number, chain = longest_walk(ruleset)
    if number > _MOST_RULES:
        assert chain is not None
        reason = (
            f"chains call each other so that one packet may meet {number:.3g} rules from here on, which would"
            " keep the kernel busy for seconds or forever; the rules are not loaded"
        )
        raise UnsupportedError((Refusal(chain.origin, backend, "walk-length", reason),))


class Loader(ABC):
    """Loads one translated ruleset into the network namespace of a :class:`TapNode`.

    A loader is made by the backend in the harness's process, from text and plain data, and is pickled to the
    process that holds the node, where every method here runs: it must have no handles and file descriptors
    before :meth:`load`. The class must be importable by name. Subclasses of NfparityError that a method
    raises reach the caller of ``open``.
    """

    reset_fallback: ResetFallback = ResetFallback.UNTRACKED
    """The condition for the stack's own resets; see :mod:`backends.testbed.suppress_stack_rst`."""

    family: Family = Family.IP
    """The family of the rules; the node carries packets of this family only."""

    lists: bool = False
    """True if the loaded rules have lists of addresses, by which any two flows can influence each other."""

    gap: float = 0.0
    """The least time in seconds between packets of a flow: some rules remove old state once in a jiffy."""

    counts: bool = False
    """True if rules test the counters of connections, which conntrack keeps only if a sysctl is set."""

    pins: bool = False
    """True if rules test which processor handles a packet."""

    zones: bool = False
    """True if rules put connections into zones of conntrack, where :meth:`forget_one` does not find them."""

    gives_ports: bool = False
    """True if rules give source ports to connections: a flow can then meet one by a port that it gets."""

    port_boundaries: tuple[int, ...] | None = ()
    """The :func:`~backends.model.sourceports.port_boundaries` of rules that are not those of the job."""

    registers_again: bool = False
    """True if :meth:`forget_lists` registers the chains again, after all other chains of their priority."""

    watches: bool = False
    """True if only :meth:`watch` can find the flows that meet a random choice or change a list."""

    chance: bool = True
    """False if no rule chooses at random, has state, or depends on anything but the packets of a flow.

    The choice of a source port does not count.
    """

    leaves_nothing: bool = False
    """True if :meth:`close` releases everything in the process, so that it can hold another session."""

    @abstractmethod
    def load(self, tap: TapNode) -> None:
        """Load the rules. Devices, addresses, routes and sysctls are already in place.

        Raises MachineError with the message of the tool or the kernel. ``tap.indexes`` has the interface
        indexes.
        """

    def forget(self, tap: TapNode) -> None:
        """Forget every connection, and empty every list."""
        self.forget_connections(tap)
        if self.lists:
            self.forget_lists()

    def forget_connections(self, tap: TapNode) -> None:
        """Forget every connection; called between flows that could meet."""
        tap.conntrack.flush()

    def forget_lists(self) -> None:  # noqa: B027  # most rules have none
        """Empty every list of addresses and reset counters; called between flows if a list may be in use."""

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        """The same for lists that packets may have changed since the last call.

        ``names`` are those of the lists of ``-m recent`` that have addresses; None if there may be others.
        """
        self.forget_lists()

    def register_again(self) -> None:
        """Register the chains again, after all other chains of their priority."""
        raise MachineError("the chains of these rules cannot be registered again")

    def forget_one(self, tap: TapNode, sent: Packet) -> bool:
        """Forget only the connection that began with ``sent``, which is fast. Lists of addresses stay.

        Return False, and change nothing, if this loader cannot do it.
        """
        if self.zones or not isinstance(sent.sport, int) or not isinstance(sent.dport, int):
            return False
        return tap.conntrack.forget(sent.family, sent.src, sent.dst, sent.proto, sent.sport, sent.dport)

    def forget_all(self, tap: TapNode, sent: Sequence[Packet]) -> bool:
        """Forget the connections that began with these packets, which is fast if they are few.

        Return False if there may be other connections.
        """
        return all(self.forget_one(tap, packet) for packet in sent) and not self.has_connections(tap)

    def has_connections(self, tap: TapNode) -> bool:
        """Return whether there may be connections; this is fast."""
        return bool(tap.conntrack.count())

    def watch(self) -> None:  # noqa: B027  # only given nftables rules are watched
        """Begin to watch the rules; only if ``watches``."""

    def watched(self) -> Watched:
        """Return the observations since :meth:`watch`."""
        return Watched()

    def change(self, change: Any) -> None:
        """Change the loaded rules while packets pass, by nft commands or steps for maps.

        Connections stay. Raises ValueError if that is not possible, MachineError with the kernel's message.
        """
        raise ValueError("these rules cannot be changed once they are loaded")

    def counters(self) -> Mapping[RuleId, int]:
        """Return the number of packets that each rule has matched; empty without counters."""
        return {}

    def close(self) -> None:  # noqa: B027  # most loaders have no such resources
        """Release resources that outlive the namespace. Not called when the process is killed."""
