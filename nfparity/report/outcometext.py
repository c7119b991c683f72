"""What became of a packet, in a line for people."""

from __future__ import annotations

from backends.model.outcome import Outcome, Verdict
from backends.model.packet import Port
from nfparity.assess.seen import Seen
from translate.ir import Family, format_address

__all__ = ["outcome_text", "then_text"]

_PLAIN = {
    Verdict.DROP: "dropped, without an answer",
    Verdict.UNSENT: "never sent: what it would have answered did not come out",
    Verdict.UNKNOWN: "not known: the rules hide it",
}


def outcome_text(outcome: Outcome, family: Family) -> str:
    """Return an outcome as people read it: where the packet went, and how it looked there."""
    if outcome.verdict in _PLAIN:
        return _PLAIN[outcome.verdict]
    if outcome.verdict is Verdict.REJECT:
        return f"rejected with {outcome.reject_with}"
    where = f"leaves by {outcome.out}" if outcome.verdict is Verdict.FORWARD else "to the node's own sockets"
    if not (outcome.dnat or outcome.snat):
        return f"{where}, as it was sent"
    source = _endpoint(outcome.src, outcome.sport, family)
    destination = _endpoint(outcome.dst, outcome.dport, family)
    return f"{where}, as {source} > {destination}"


def then_text(seen: Seen, family: Family) -> str:
    """Return how a packet ends then, as people read it."""
    return seen.instead or outcome_text(seen.then, family)


def _endpoint(address: int | None, port: Port | None, family: Family) -> str:
    if address is None:
        return "?"
    text = format_address(family, address)
    if port is None:
        return text
    shown = str(port) if isinstance(port, int) else f"a port of {port}"
    return f"[{text}]:{shown}" if family is Family.IP6 else f"{text}:{shown}"
