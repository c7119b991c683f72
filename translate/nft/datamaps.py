"""Lookups whose entries do the same, or differ in the target of a DNAT alone: sets and data maps.

Neither needs a chain per entry. ``dnat to KEY map @M`` goes on with the next rule when the map has no such
key (``nft_lookup_eval`` breaks), as a lookup does. JSON cannot express it before nft 1.0.7; text can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from translate.ir import Action, Dnat, Entry, Family, NatPorts, format_address
from translate.nft.statements import nat_flags

__all__ = ["DnatMap", "dnat_map", "same_actions"]


def same_actions(entries: Sequence[Entry]) -> tuple[Action, ...] | None:
    """Return what all entries do, or None when they do different things."""
    first = entries[0].actions if entries else ()
    return first if all(entry.actions == first for entry in entries) else None


@dataclass(frozen=True, slots=True)
class DnatMap:
    """A DNAT to the address, and the port where ``ports`` says so, that a map holds for a key."""

    family: Family
    ported: bool
    ports: NatPorts

    @property
    def data(self) -> str:
        """The expression whose type the map's data have."""
        return f"{self.family.value} daddr" + (" . th dport" if self.ported else "")

    def of(self, entry: Entry) -> str:
        """The data of one entry."""
        (dnat,) = entry.actions
        assert isinstance(dnat, Dnat)
        assert dnat.addresses is not None
        address = format_address(self.family, dnat.addresses.low)
        return f"{address} . {dnat.ports.interval.low}" if dnat.ports.interval is not None else address

    def statement(self, key: str, name: str) -> str:
        """The rule's statement."""
        return f"dnat {self.family.value} to {key} map @{name}{nat_flags(self.ports)}"


def dnat_map(entries: Sequence[Entry], family: Family) -> DnatMap | None:
    """Return the form of the map that the entries' targets can be put into, or None."""
    found: set[tuple[bool, NatPorts]] = set()
    for entry in entries:
        match entry.actions:
            case (Dnat(addresses=addresses, ports=ports),) if addresses is not None and addresses.is_point:
                port = ports.interval
                if port is not None and not port.is_point:
                    return None
                found.add((port is not None, _without_interval(ports)))
            case _:
                return None
    return DnatMap(family, *found.pop()) if len(found) == 1 else None


@lru_cache(maxsize=1024)
def _without_interval(ports: NatPorts) -> NatPorts:
    return replace(ports, interval=None)
