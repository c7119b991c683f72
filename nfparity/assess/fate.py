"""The fate of a packet: one word per outcome, as the catalogue's expectations use it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from backends.model.outcome import Outcome, Verdict

__all__ = ["Fate", "fate_of"]


class Fate(StrEnum):
    """The fate of a packet, relative to the service that it was sent to."""

    SERVICE = "service"
    """Delivered to a translated destination."""
    ROUTED = "routed"
    """Left the node with its original destination."""
    LOCAL = "local"
    """Delivered to the node's own sockets with its original destination."""
    DROPPED = "dropped"
    """Dropped without an answer."""
    REJECTED = "rejected"
    """Rejected with an answer to its sender."""
    NONE = "none"
    """Never sent, or hidden by the input."""


_PLAIN: Final = {
    Verdict.DROP: Fate.DROPPED,
    Verdict.REJECT: Fate.REJECTED,
    Verdict.UNSENT: Fate.NONE,
    Verdict.UNKNOWN: Fate.NONE,
}


def fate_of(outcome: Outcome) -> Fate:
    """Return the fate of a packet with this outcome."""
    if outcome.verdict in _PLAIN:
        return _PLAIN[outcome.verdict]
    if outcome.dnat:
        return Fate.SERVICE
    return Fate.LOCAL if outcome.verdict is Verdict.LOCAL else Fate.ROUTED
