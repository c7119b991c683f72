"""Traffic to service addresses that leaves by the default route today: a defect of its own, whatever comes.

No rule of kube-proxy's iptables mode is about a port, a protocol or an address that no service has. Such
packets go where the routing table sends them, which is out of the cluster: someone else may answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nfparity.assess.ends import End
from nfparity.assess.facts import Facts
from nfparity.assess.seen import Seen

__all__ = ["Leak", "leaks"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leak:
    """Packets of one kind that leave by ``device``; ``remains`` is whether they still will."""

    kind: str
    device: str
    seen: tuple[Seen, ...]

    @property
    def remains(self) -> bool:
        """Whether any of them leaves by routing then, too."""
        return any(one.then_end is End.ROUTED for one in self.seen)


def leaks(facts: Facts, routed: Iterable[Seen]) -> Iterator[Leak]:
    """Yield the leaks among packets that are routed today as they are."""
    devices = _default_devices(facts)
    found: dict[tuple[str, str], list[Seen]] = {}
    for one in routed:
        kind, device = _kind(facts, one), one.today.out
        # What came by the same device only comes back to where it was: nothing of the cluster's leaves.
        if kind is not None and device in devices and device is not None and device != one.entry:
            found.setdefault((kind, device), []).append(one)
    for (kind, device), seen in sorted(found.items()):
        yield Leak(kind=kind, device=device, seen=tuple(seen))


def _kind(facts: Facts, seen: Seen) -> str | None:
    packet = seen.packet
    if packet.dst in facts.cluster_ips:
        return "an undefined port of a ClusterIP" if packet.has_ports else "no port at all, to a ClusterIP"
    if facts.service_range is not None and packet.dst in facts.service_range:
        return "an address of the service range that no service has"
    return None


def _default_devices(facts: Facts) -> frozenset[str]:
    """The devices of routes to everywhere."""
    bits = facts.family.bits
    return frozenset(r.dev for r in facts.node.routes if r.family is facts.family and r.dst.size == 1 << bits)
