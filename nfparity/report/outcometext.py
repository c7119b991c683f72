"""One-line descriptions of outcomes."""

from __future__ import annotations

from backends.model.outcome import Outcome, Verdict
from harness.explain.explain import endpoint_text
from nfparity.assess.difference import ChangedPacket
from translate.ir import Family

__all__ = ["after_text", "outcome_text"]

_PLAIN = {
    Verdict.DROP: "dropped, without an answer",
    Verdict.UNSENT: "never sent: the packet that it answers did not arrive",
    Verdict.UNKNOWN: "unknown: the input hides the deciding rules",
}


def outcome_text(outcome: Outcome, family: Family) -> str:
    """Return an outcome in words: the destination of the packet, and its addresses there."""
    if outcome.verdict in _PLAIN:
        return _PLAIN[outcome.verdict]
    if outcome.verdict is Verdict.REJECT:
        return f"rejected with {outcome.reject_with}"
    where = f"leaves by {outcome.out}" if outcome.verdict is Verdict.FORWARD else "to the node's own sockets"
    if not (outcome.dnat or outcome.snat):
        return f"{where}, as it was sent"
    source = endpoint_text(family, outcome.src, outcome.sport)
    destination = endpoint_text(family, outcome.dst, outcome.dport)
    return f"{where}, as {source} > {destination}"


def after_text(changed: ChangedPacket, family: Family) -> str:
    """Return the outcome in nftables mode in words."""
    return changed.instead or outcome_text(changed.after, family)
