"""Lookups whose entries have the same actions or differ only in a DNAT target: sets and maps of targets.

Neither needs a chain per entry. ``dnat to KEY map @M`` continues with the next rule if the map does not have
the key (``nft_lookup_eval`` breaks), as a lookup does. JSON cannot express it before nft 1.0.7; text can.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from translate.dataclass import replace
from translate.ir import Action, Dnat, Entry, NatPorts

__all__ = ["Targets", "dnat_targets", "same_actions"]


def same_actions(entries: Sequence[Entry]) -> tuple[Action, ...] | None:
    """Return the actions that all entries share, or None if they differ."""
    first = entries[0].actions if entries else ()
    return first if all(entry.actions == first for entry in entries) else None


class Targets(NamedTuple):
    """The common form of the targets: with or without a port, and the choice of the port."""

    ported: bool
    ports: NatPorts


def dnat_targets(entries: Sequence[Entry]) -> Targets | None:
    """Return the common form of the entries' targets if a map can hold them, else None."""
    forms: set[Targets] = set()
    for entry in entries:
        match entry.actions:
            case (Dnat(addresses=addresses, ports=ports),) if addresses is not None and addresses.is_point:
                port = ports.interval
                if port is not None and not port.is_point:
                    return None
                forms.add(Targets(port is not None, _without_interval(ports)))
            case _:
                return None
    return forms.pop() if len(forms) == 1 else None


@lru_cache(maxsize=1024)
def _without_interval(ports: NatPorts) -> NatPorts:
    return replace(ports, interval=None)
