"""The values that a packet itself has where rules test it, for rules that do not match."""

from __future__ import annotations

from backends.model.packet import Packet
from backends.simulator import Event, HookEntered, RuleVisited, Tracked
from harness.corpus.formats.packets import protocol_name
from translate.ir import Family, Field, FieldTest, format_address

__all__ = ["CurrentPacket"]


class CurrentPacket:
    """The packet at the current place of its path. It changes between hooks, as NAT has rewritten it."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._packet: Packet | None = None
        self._interfaces = {Field.IIF: "", Field.OIF: ""}
        self._state = ""

    def follow(self, event: Event) -> None:
        """Move on by one event of the path."""
        if isinstance(event, HookEntered):
            self._packet = event.packet
            self._interfaces = {Field.IIF: event.iif, Field.OIF: event.oif}
        elif isinstance(event, Tracked):
            self._state = event.state.name or ""

    def value(self, visit: RuleVisited) -> str:
        """Return the value of the field that a rule has tested in vain; empty if it is not known here."""
        test = visit.failed
        if not isinstance(test, FieldTest) or self._packet is None:
            return ""
        packet = self._packet
        match test.field:
            case Field.SADDR:
                return format_address(self._family, packet.src)
            case Field.DADDR:
                return format_address(self._family, packet.dst)
            case Field.L4PROTO:
                return protocol_name(packet.proto)
            case Field.SPORT:
                return "absent" if packet.sport is None else str(packet.sport)
            case Field.DPORT:
                return "absent" if packet.dport is None else str(packet.dport)
            case Field.IIF | Field.OIF:
                return self._interfaces[test.field] or "none"
            case Field.MARK:
                return f"{visit.mark if test.mask is None else visit.mark & test.mask:#x}"
            case Field.CT_STATE:
                return self._state
            case _:
                return ""
