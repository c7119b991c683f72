"""Flows of a member that differ from other flows of it in later packets only.

The rules of the nat table see the first packet of a connection, and conntrack treats all later ones as that
one. If all rules of a member are there, and leave nothing behind but that decision, later packets meet none
of them. What becomes of later packets is then the same for all members of a class.
"""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.flow import Send
from backends.model.packet import Packet
from harness.corpus.generate.alike.groups import Member
from harness.corpus.generate.candidates.candidates import Steps
from translate.dataclass import dataclass, field, replace
from translate.ir import (
    Accept,
    Dnat,
    Drop,
    FieldTest,
    Goto,
    Jump,
    Masquerade,
    Random,
    Redirect,
    Return,
    Rule,
    SetMark,
    Snat,
    TableName,
    flat,
)

__all__ = ["FollowUps", "decides_at_first", "opening_packet"]

_FORGETTABLE = Accept | Dnat | Drop | Goto | Jump | Masquerade | Redirect | Return | SetMark | Snat
"""Actions of the nat table that leave nothing behind but the decision on the connection."""


def decides_at_first(member: Member, rules: Iterable[Rule]) -> bool:
    """Return whether the rules of a member see first packets only, and nothing that they do is kept."""
    return (
        all(table is TableName.NAT for table, _, _ in member.places)
        and all(isinstance(action, _FORGETTABLE) for rule in rules for action in rule.actions)
        and all(isinstance(test, FieldTest | Random) for rule in rules for test in flat(rule.tests))
    )


def opening_packet(first: Send, *, ports: bool) -> Packet:
    """Return the first packet of a flow, without its source port unless rules distinguish ``ports``."""
    return first.packet if ports else replace(first.packet, sport=None)


@dataclass(slots=True)
class FollowUps:
    """Finds the flows of one member that repeat the first packet of an earlier flow with one packet.

    Of the flows with later packets, the first at each entrance is none of them: there, connections go on.
    ``ports``: rules distinguish source ports.
    """

    ports: bool
    _alone: set[tuple[str | None, Packet]] = field(default_factory=set)
    _continued: set[tuple[object, ...]] = field(default_factory=set)

    def add(self, steps: Steps) -> bool:
        """Add a flow; return whether it is one of them."""
        first, *later = steps
        assert isinstance(first, Send)
        opening = first.entry, opening_packet(first, ports=self.ports)
        if not later:
            self._alone.add(opening)
            return False
        if any(isinstance(step, Send) for step in later):
            return False
        packet = first.packet
        entrance = first.entry is None, packet.proto, packet.dst, packet.dport
        if entrance not in self._continued:
            self._continued.add(entrance)
            return False
        return opening in self._alone
