"""The entries of the second catalogue that changed packets show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nfparity.assess.catalogue import Entry, entry
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.fate import Fate
from nfparity.assess.ipvs.probes import Kind, Probe
from nfparity.assess.node.facts import Facts
from translate.dataclass import dataclass
from translate.ir import Hook

__all__ = ["CLAIMED", "claimed_by", "entries_of"]

_REFUSED: Final = (Fate.DROPPED, Fate.REJECTED)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A probe's kinds and a further condition under which a changed packet belongs to an entry."""

    id: str
    kinds: tuple[Kind, ...]
    holds: Callable[[Facts, Probe, ChangedPacket], bool]


def _at_cluster_ip(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return probe.address in facts.cluster_ips


def _at_external_ip(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return probe.address not in facts.cluster_ips


def _always(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return True


def _denied_in(hook: Hook) -> Callable[[Facts, Probe, ChangedPacket], bool]:
    def holds(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
        return any(denial.hook is hook for denial in facts.other_rules.denials) or facts.other_rules.drops

    return holds


def _is_node_port(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    service = probe.service
    return service is not None and probe.virtual is not None and service.node_port == probe.virtual.port


def _ranged_from_node(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return (
        probe.client.entry is None
        and probe.service is not None
        and bool(probe.service.source_ranges)
        and probe.address in probe.service.load_balancer_ips
    )


def _policy_local(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    service = probe.service
    if service is None or not service.external_local or probe.address == service.cluster_ip:
        return False
    return changed.fate_before is not changed.fate_after or changed.before.dst != changed.after.dst


def _scheduler(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return changed.measured


def _masquerade(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
    return changed.before.dst == changed.after.dst and changed.before.src != changed.after.src


def _only(*fields: str) -> Callable[[Facts, Probe, ChangedPacket], bool]:
    def holds(facts: Facts, probe: Probe, changed: ChangedPacket) -> bool:
        return set(changed.fields) <= set(fields)

    return holds


_RULES: Final = (
    _Rule("I01", (Kind.ADDRESS,), _at_cluster_ip),
    _Rule("I02", (Kind.ADDRESS,), _at_external_ip),
    _Rule("I03", (Kind.HEALTH,), _always),
    _Rule("I04", (Kind.SOURCE,), _always),
    _Rule("I05", (Kind.UNASSIGNED,), _always),
    _Rule("I06", (Kind.SERVICE,), _is_node_port),
    _Rule("I07", (Kind.SERVICE,), _scheduler),
    _Rule("I08", (Kind.SERVICE,), _ranged_from_node),
    _Rule("I09", (Kind.SERVICE,), _policy_local),
    _Rule("I10", (Kind.SERVICE,), _denied_in(Hook.INPUT)),
    _Rule("I11", (Kind.SERVICE,), _denied_in(Hook.FORWARD)),
    _Rule("I12", (Kind.SERVICE,), _only("ttl")),
    _Rule("I13", (Kind.SERVICE,), _masquerade),
    _Rule("I14", (Kind.SERVICE, Kind.LATE), _only("mark")),
    _Rule("I15", (Kind.LATE,), _always),
)
"""The more specific rule first."""

CLAIMED: Final = tuple(rule.id for rule in _RULES)
"""The ids of the entries that packets can show."""


def claimed_by(facts: Facts, probe: Probe, changed: ChangedPacket) -> Entry | None:
    """Return the entry that a changed packet shows, or None."""
    for rule in _RULES:
        known = entry(rule.id)
        if probe.kind not in rule.kinds or not known.holds_at(facts.version):
            continue
        if known.allows(changed.fate_before, changed.fate_after) and rule.holds(facts, probe, changed):
            return known
    return None


def entries_of(probe: Probe) -> tuple[str, ...]:
    """Return the ids of the entries that a probe can show."""
    return tuple(rule.id for rule in _RULES if probe.kind in rule.kinds)
