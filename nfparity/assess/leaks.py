"""Leaks: traffic to service addresses that leaves by the default route in iptables mode.

No rule of kube-proxy's iptables mode matches packets to a port, a protocol or an address that no service has.
Such packets follow the routing table out of the cluster, where another host may answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nfparity.assess.difference import ChangedPacket
from nfparity.assess.fate import Fate
from nfparity.assess.node.facts import Facts
from translate.dataclass import dataclass

__all__ = ["Leak", "leaks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Packets of one kind that leave by ``device``."""

    kind: str
    device: str
    examples: tuple[ChangedPacket, ...]

    @property
    def remains(self) -> bool:
        """True if any of them leaves by routing in nftables mode, too."""
        return any(packet.fate_after is Fate.ROUTED for packet in self.examples)


def leaks(facts: Facts, routed: Iterable[ChangedPacket]) -> Iterator[Leak]:
    """Yield the leaks among packets that iptables mode routes untranslated."""
    devices = _default_devices(facts)
    groups: dict[tuple[str, str], list[ChangedPacket]] = {}
    for packet in routed:
        kind, device = _kind(facts, packet), packet.before.out
        # A packet that arrived on the same device does not come from the cluster.
        if kind is not None and device in devices and device is not None and device != packet.entry:
            groups.setdefault((kind, device), []).append(packet)
    for (kind, device), changed in sorted(groups.items()):
        yield Leak(kind=kind, device=device, examples=tuple(changed))


def _kind(facts: Facts, changed: ChangedPacket) -> str | None:
    packet = changed.packet
    if packet.dst in facts.cluster_ips:
        return "an undefined port of a ClusterIP" if packet.has_ports else "a ClusterIP, without a port"
    if facts.service_range is not None and packet.dst in facts.service_range:
        return "an address of the service range that no service has"
    return None


def _default_devices(facts: Facts) -> frozenset[str]:
    """Return the devices of default routes."""
    bits = facts.family.bits
    return frozenset(r.dev for r in facts.node.main_routes(facts.family) if r.dst.size == 1 << bits)
