"""Differences between orders of registration in words, for every form of report."""

from __future__ import annotations

from typing import Final

from backends.model.outcome import Outcome
from nfparity.assess.difference import ChangedPacket
from nfparity.assess.replay.orders import OrderDifference
from nfparity.report.outcometext import after_text, outcome_text
from translate.ir import Family

__all__ = ["ACTION", "TITLE", "order_outcomes", "ways_text"]

TITLE: Final = "the outcome depends on the order in which two components register their chains"
ACTION: Final = (
    "change the rules so that only one component decides about these packets, or give its base chain another"
    " priority"
)


def order_outcomes(changed: ChangedPacket, family: Family) -> tuple[str, str]:
    """Return the outcomes if kube-proxy's chains run first, and if the others do."""
    first, second = outcome_text(changed.before, family), after_text(changed, family)
    if "mark" in changed.fields:
        return f"{first}{_mark(changed.before)}", f"{second}{_mark(changed.after)}"
    return first, second


def _mark(outcome: Outcome) -> str:
    return "" if outcome.mark is None else f", with mark {outcome.mark:#x}"


def ways_text(difference: OrderDifference) -> tuple[str, str]:
    """Return how a node gets into each order."""
    return difference.order.kube_proxy_first, difference.order.others_first
