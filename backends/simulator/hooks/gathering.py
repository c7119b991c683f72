"""Fragments that the node keeps until it has all of their packet.

A fragment waits for the other fragments of its packet, and the node drops it after a while. The simulator
does not put packets together, so the fate of a second fragment of the same packet is unknown.
"""

from __future__ import annotations

from backends.model.packet import Fragment, Packet
from backends.simulator.hooks.fate import Dropped
from backends.simulator.matching.undecided import Undecided
from translate.dataclass import dataclass, field

__all__ = ["Gathering"]

_Key = tuple[int, int, int, int | None]


@dataclass(slots=True)
class Gathering:
    """The fragments that wait at one place of the node in one run."""

    waiting: dict[_Key, Fragment] = field(default_factory=dict)

    def keep(self, packet: Packet) -> Dropped:
        """Keep a fragment (``ip_defrag``, ``nf_ct_frag6_gather``, ``ipv6_frag_rcv``).

        Raises Undecided if another fragment of its packet may be there.
        """
        fragment = packet.fragment
        assert fragment is not None
        key = (packet.src, packet.dst, packet.proto, fragment.id)
        if self.waiting.setdefault(key, fragment) != fragment:
            raise Undecided("the node may put this fragment together with an earlier one of the same packet")
        return Dropped("it is a fragment, and the node waits for the other fragments of its packet")
