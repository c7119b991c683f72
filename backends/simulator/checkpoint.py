"""A place in a run at which another way branches off, kept so that the way need not start over.

What a way has in common with the one that it branches off from is most of a long walk: the rules that
lead to a service are the same for all of its endpoints. Of a run, only a packet in the nat table can
be kept, and only that of a flow's first step, as long as nothing beside the packet and its unconfirmed
connection remembers it (:meth:`~backends.simulator.stack.Stack.is_young`). Other ways are followed
from the beginning of the flow; the outcomes are the same, and a trace is always made so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from backends.simulator.fields import View
from backends.simulator.prepare import PreparedRule, PreparedTable

__all__ = ["Checkpoint"]


class Checkpoint(NamedTuple):
    """A packet in the walk through a table, before a rule that draws chance.

    ``view`` is its own: nothing else changes the packet. ``rest`` are the rules that are left to ask
    in each chain where some are, the innermost last; the one that draws comes first there.
    """

    table: PreparedTable
    view: View
    rest: tuple[Sequence[PreparedRule], ...]
