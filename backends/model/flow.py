"""A flow: packets of one or a few connections, in order, with what is said in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from backends.model.packet import Packet
from translate.ir import Family, TcpFlag

__all__ = ["Again", "Answer", "Flow", "IcmpError", "Pause", "Repeated", "Reply", "Send", "Step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Send ``packet``: into interface ``entry``, or made on the node when ``entry`` is None."""

    packet: Packet
    entry: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Whoever got the last :class:`Send` or :class:`Again` answers it.

    The answer is built from what actually came out: its tuple swapped, entering at the interface
    where it left, or made on the node if it was delivered there. ``flags`` is for TCP; None means
    SYN+ACK to a SYN, and ACK otherwise. Unsent when nothing came out.
    """

    flags: TcpFlag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """Another packet of the last :class:`Send`'s connection, as its sender sends it.

    ``flags`` None means ACK for TCP. The same addresses, ports and entry as that Send; TCP
    sequence numbers follow what both sides have sent.
    """

    flags: TcpFlag | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IcmpError:
    """Whoever got the last packet that came out answers with an ICMP error quoting it.

    ``type`` and ``code`` are ICMP's, or ICMPv6's in a flow of IPv6. ``source`` is the error's sender
    (a router on the way, say); None means the address that the quoted packet was sent to. Unsent
    when nothing came out.
    """

    type: int
    code: int
    source: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Let ``seconds`` pass (on the simulator's clock; really, on a kernel)."""

    seconds: float


Step = Send | Reply | Again | IcmpError | Pause
Answer = Reply | Again | IcmpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """A named sequence of steps that starts with a :class:`Send`.

    Flows do not influence each other: a backend forgets all connections between two flows that
    could meet. What must interact (clashing tuples, affinity) is one flow with several Sends.
    ``why`` says what the flow is there to show.
    """

    id: str
    steps: tuple[Step, ...]
    why: str = ""
    source: str = field(default="", compare=False)

    @property
    def first(self) -> Send:
        """The flow's first packet and where it enters."""
        step = self.steps[0]
        assert isinstance(step, Send)
        return step

    @property
    def family(self) -> Family:
        """The family of the flow's packets."""
        return self.first.packet.family


@dataclass(frozen=True, slots=True)
class Repeated:
    """A flow that is to be run ``times`` times, each time as if it were the first.

    With ``lists`` it leaves something in a list of addresses, which has to be emptied between two runs.
    """

    flow: Flow
    times: int
    lists: bool = True
