"""Flows: the packets of one or a few connections in order, with answers and pauses."""

from __future__ import annotations

from backends.model.packet import Packet
from translate.dataclass import dataclass, field
from translate.ir import Family, TcpFlag

__all__ = ["Again", "Answer", "Flow", "IcmpError", "Pause", "Repeated", "Reply", "Send", "Step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send ``packet`` into interface ``entry``, or from the node if ``entry`` is None."""

    packet: Packet
    entry: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer from the receiver of the last :class:`Send` or :class:`Again`.

    The answer is built from the packet that came out: its tuple is inverted, and it enters where that packet
    left, or is made on the node if that packet was delivered. ``flags`` is for TCP; None means SYN+ACK to a
    SYN, and ACK otherwise. If nothing came out, nothing is sent.
    """

    flags: TcpFlag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Another packet from the sender of the last :class:`Send`, in the same connection.

    It has the addresses, ports and entry of that Send. ``flags`` None means ACK for TCP. TCP sequence
    numbers continue those of both sides.
    """

    flags: TcpFlag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcmpError:
    """An ICMP error from the receiver of the last packet that came out, which it quotes.

    ``type`` and ``code`` are those of ICMP, or of ICMPv6 in a flow of IPv6. ``source`` is the sender of the
    error, for example a router; None means the destination of the quoted packet. If nothing came out, nothing
    is sent.
    """

    type: int
    code: int
    source: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Wait ``seconds``: on the simulator's clock, or in real time on a kernel."""

    seconds: float


Step = Send | Reply | Again | IcmpError | Pause
Answer = Reply | Again | IcmpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A named sequence of steps that starts with a :class:`Send`.

    Flows do not influence each other: a backend forgets all connections between two flows that could meet.
    Packets that must interact (clashing tuples, affinity) belong to one flow with several Sends. ``why`` is
    the purpose of the flow, ``source`` the file and line that it was read from.
    """

    id: str
    steps: tuple[Step, ...]
    why: str = ""
    source: str = field(default="", compare=False)

    @property
    def first(self) -> Send:
        """The flow's first packet and its entry."""
        step = self.steps[0]
        assert isinstance(step, Send)
        return step

    @property
    def family(self) -> Family:
        """The family of the flow's packets."""
        return self.first.packet.family


@dataclass(frozen=True, slots=True)
class Repeated:
    """A flow to run ``times`` times, each time without state of earlier runs.

    ``lists``: the flow adds to lists of addresses (``-m recent``), which must be emptied between two runs.
    ``watched``: the result has what a backend can observe of random choices and lists; False if only the
    outcomes count. ``ports``: source ports that nothing on the flow's way distinguishes from its own; no run
    affects another with a different one. There are none if that is not known. ``filled``: the names of these
    lists, if the flow changes nothing else that another flow may meet; None if that is not known.
    """

    flow: Flow
    times: int
    lists: bool = True
    watched: bool = True
    ports: range = range(0)
    filled: frozenset[str] | None = None
