"""Reading a field off a packet at a hook."""

from __future__ import annotations

from dataclasses import dataclass

from backends.packet import Port
from backends.simulator.router import AnyRouter
from backends.simulator.skb import Skb
from translate.ir import Field, Hook, Protocol

__all__ = ["View"]


@dataclass(slots=True)
class View:
    """A packet as the rules of one hook see it; interface names are empty where there is none."""

    skb: Skb
    hook: Hook
    iif: str
    oif: str
    router: AnyRouter

    def read(self, field: Field) -> Port | str | None:
        """Return the field's value, or None when the packet does not have the field."""
        packet = self.skb.packet
        match field:
            case Field.SADDR:
                return packet.src
            case Field.DADDR:
                return packet.dst
            case Field.FRAGMENT:
                return 0
            case Field.L4PROTO:
                return packet.proto
            case Field.SPORT:
                return packet.sport if packet.has_ports else None
            case Field.DPORT:
                return packet.dport if packet.has_ports else None
            case Field.ICMP_TYPE:
                return packet.icmp_type or 0 if packet.is_icmp else None
            case Field.ICMP_CODE:
                return packet.icmp_code or 0 if packet.is_icmp else None
            case Field.TCP_FLAGS:
                return int(packet.flags) if packet.proto == Protocol.TCP else None
            case Field.MARK:
                return self.skb.mark
            case Field.IIF:
                return self.iif
            case Field.OIF:
                return self.oif
            case Field.CT_STATE:
                return int(self.skb.ct_state)
            case Field.FIB_SADDR_TYPE:
                return int(self.router.address_type(packet.src))
            case Field.FIB_DADDR_TYPE:
                return int(self.router.address_type(packet.dst))
            case Field.FIB_SADDR_TYPE_IIF:
                return int(self.router.address_type(packet.src, self.iif or None))
            case Field.FIB_DADDR_TYPE_IIF:
                return int(self.router.address_type(packet.dst, self.iif or None))
            case Field.FIB_SADDR_TYPE_OIF:
                return int(self.router.address_type(packet.src, self.oif or None))
            case Field.FIB_DADDR_TYPE_OIF:
                return int(self.router.address_type(packet.dst, self.oif or None))
            case _:
                return self._connection(field)

    def _connection(self, field: Field) -> Port | None:
        """``xt_conntrack``: a packet without an entry has none of these fields."""
        entry = self.skb.entry
        if entry is None:
            return None
        match field:
            case Field.CT_STATUS:
                return int(entry.status)
            case Field.CT_MARK:
                return entry.mark
            case Field.CT_DIRECTION:
                return self.skb.direction
            case Field.CT_PROTO:
                return entry.original.proto
            case Field.CT_ORIGINAL_SADDR:
                return entry.original.src
            case Field.CT_ORIGINAL_DADDR:
                return entry.original.dst
            case Field.CT_ORIGINAL_SPORT:
                return entry.original.sport
            case Field.CT_ORIGINAL_DPORT:
                return entry.original.dport
            case Field.CT_REPLY_SADDR:
                return entry.reply.src
            case Field.CT_REPLY_DADDR:
                return entry.reply.dst
            case Field.CT_REPLY_SPORT:
                return entry.reply.sport
            case Field.CT_REPLY_DPORT:
                return entry.reply.dport
            case _:
                raise AssertionError(field)
