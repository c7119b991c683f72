"""Two loaders on one node: what stays on it, and what comes beside it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Final

from backends.replay.loader import Loader, RuleId, Watched
from backends.testbed.tapnode import TapNode

__all__ = ["BesideLoader"]

_ONE: Final = Fraction(1)


class BesideLoader(Loader):
    """Loads ``first``, and ``second`` beside it.

    Of two chains at one hook and priority, the kernel asks the one first that was registered last
    (``nf_hook_entries_grow``), so that the order has to be that in which a node gets them.
    """

    def __init__(self, first: Loader, second: Loader) -> None:
        if first.family is not second.family or first.reset_fallback is not second.reset_fallback:
            raise ValueError("two loaders on one node are for one family, and track connections alike")
        self._loaders = (first, second)
        self.family = first.family
        self.reset_fallback = first.reset_fallback
        self.lists = first.lists or second.lists

    def load(self, tap: TapNode) -> None:
        """Load one after the other; raises MachineError with what either's tool said."""
        for one in self._loaders:
            one.load(tap)
        self.lists = any(one.lists for one in self._loaders)
        self.watches = any(one.watches for one in self._loaders)

    def forget_connections(self, tap: TapNode) -> None:
        """Forget every connection, as both do."""
        for one in self._loaders:
            one.forget_connections(tap)

    def forget_lists(self) -> None:
        """Empty the lists of both."""
        for one in self._loaders:
            if one.lists:
                one.forget_lists()

    def watch(self) -> None:
        """Begin to look at what the rules do that are watched."""
        for one in self._loaders:
            if one.watches:
                one.watch()

    def watched(self) -> Watched:
        """Return what was seen in both."""
        seen = [one.watched() for one in self._loaders if one.watches]
        return Watched(
            prod((one.rarest for one in seen), start=_ONE),
            any(one.lists for one in seen),
            any(one.dependent for one in seen),
        )

    def counters(self) -> Mapping[RuleId, int]:
        """Return the counters of the first that counts."""
        return next((found for one in self._loaders if (found := one.counters())), {})

    def close(self) -> None:
        """Let go of what both keep."""
        for one in self._loaders:
            one.close()
