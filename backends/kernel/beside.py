"""Two loaders on one node: what stays on it, and what comes beside it."""

from __future__ import annotations

from collections.abc import Mapping

from backends.kernel.loader import Loader, RuleId
from backends.kernel.tapnode import TapNode

__all__ = ["BesideLoader"]


class BesideLoader(Loader):
    """Loads ``first``, and ``second`` beside it.

    Of two chains at one hook and priority, the kernel asks the one first that was registered last
    (``nf_hook_entries_grow``), so that the order has to be that in which a node gets them.
    """

    def __init__(self, first: Loader, second: Loader) -> None:
        if first.family is not second.family or first.quiet is not second.quiet:
            raise ValueError("two loaders on one node are for one family, and track connections alike")
        self._loaders = (first, second)
        self.family = first.family
        self.quiet = first.quiet
        self.lists = first.lists or second.lists

    def load(self, tap: TapNode) -> None:
        """Load one after the other; raises MachineError with what either's tool said."""
        for one in self._loaders:
            one.load(tap)
        self.lists = any(one.lists for one in self._loaders)

    def forget(self, tap: TapNode) -> None:
        """Forget every connection, and empty the lists of both."""
        for one in self._loaders:
            one.forget(tap)

    def counters(self) -> Mapping[RuleId, int]:
        """Return the counters of the first that counts."""
        return next((found for one in self._loaders if (found := one.counters())), {})

    def close(self) -> None:
        """Let go of what both keep."""
        for one in self._loaders:
            one.close()
