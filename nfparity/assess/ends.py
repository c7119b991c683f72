"""Where a packet ends, in the few words in which the catalogue tells its expectations."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from backends.model.outcome import Outcome, Verdict

__all__ = ["End", "end_of"]


class End(StrEnum):
    """Where a packet ends, seen from the service that it was meant for."""

    SERVICE = "service"
    """Its destination was translated, and it went there."""
    ROUTED = "routed"
    """It left the node for the destination that it had."""
    LOCAL = "local"
    """It was delivered to the node's own sockets, for the destination that it had."""
    DROPPED = "dropped"
    """It ended without a trace."""
    REJECTED = "rejected"
    """It ended, and its sender was told."""
    NONE = "none"
    """It was never sent, or the rules hide its end."""


_PLAIN: Final = {
    Verdict.DROP: End.DROPPED,
    Verdict.REJECT: End.REJECTED,
    Verdict.UNSENT: End.NONE,
    Verdict.UNKNOWN: End.NONE,
}


def end_of(outcome: Outcome) -> End:
    """Return the end of a packet with this outcome."""
    if outcome.verdict in _PLAIN:
        return _PLAIN[outcome.verdict]
    if outcome.dnat:
        return End.SERVICE
    return End.LOCAL if outcome.verdict is Verdict.LOCAL else End.ROUTED
