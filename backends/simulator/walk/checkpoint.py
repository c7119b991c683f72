"""Checkpoints: places in a run from which another branch can start.

Two branches of a flow share most of a long walk: the rules that lead to a service are the same for all of its
endpoints. A checkpoint saves the packet of a flow's first step in the nat table, if there is no state besides
the packet and its unconfirmed connection (``Stack._is_young``). All other branches start at the beginning of
the flow. The outcomes are the same, and traced runs always start at the beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backends.simulator.matching.view import View
from backends.simulator.walk.prepare import PreparedRule, PreparedTable

__all__ = ["Checkpoint"]


class Checkpoint(NamedTuple):
    """A packet in the walk through a table, before a rule that draws a random number.

    The view is a copy: nothing else changes its packet. ``rest`` has the remaining rules of each chain, the
    innermost chain last; there the rule that draws comes first.
    """

    table: PreparedTable
    view: View
    rest: tuple[Sequence[PreparedRule], ...]
