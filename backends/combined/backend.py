"""Several loaders on one node: one for its present rules, and others for rules that are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import prod
from typing import Final

from backends.model.packet import Packet
from backends.replay.loader import Loader, RuleId, Watched
from backends.testbed.tapnode import TapNode

__all__ = ["CombinedLoader"]

_ONE: Final = Fraction(1)


class CombinedLoader(Loader):
    """Loads the rules of several loaders, one after the other.

    The order must be that in which a node loads them, because it decides the order of chains with the same
    hook and priority: the kernel begins with the one that was registered last (``nf_hook_entries_grow``).
    """

    def __init__(self, *loaders: Loader) -> None:
        first = loaders[0]
        if any(
            each.family is not first.family or each.reset_fallback is not first.reset_fallback
            for each in loaders
        ):
            raise ValueError("loaders on one node must have the same family and the same reset_fallback")
        self._loaders = loaders
        self.family = first.family
        self.reset_fallback = first.reset_fallback
        self.lists = any(loader.lists for loader in loaders)
        self.gap = max(loader.gap for loader in loaders)
        self.counts = any(loader.counts for loader in loaders)
        self.pins = any(loader.pins for loader in loaders)

    def load(self, tap: TapNode) -> None:
        """Load all in order. Raises MachineError with the message of the tool that failed."""
        for loader in self._loaders:
            loader.load(tap)
        self.lists = any(loader.lists for loader in self._loaders)
        self.watches = any(loader.watches for loader in self._loaders)
        self.chance = any(loader.chance for loader in self._loaders)
        self.zones = any(loader.zones for loader in self._loaders)
        self.gives_ports = any(loader.gives_ports for loader in self._loaders)
        boundaries = [loader.port_boundaries for loader in self._loaders]
        self.port_boundaries = None if None in boundaries else tuple(sorted(chain(*filter(None, boundaries))))

    def forget_connections(self, tap: TapNode) -> None:
        """Forget every connection of all loaders."""
        for loader in self._loaders:
            loader.forget_connections(tap)

    def forget_all(self, tap: TapNode, sent: Sequence[Packet]) -> bool:
        """Forget the connections that began with these packets; return False if others may exist."""
        return all(loader.forget_all(tap, sent) for loader in self._loaders)

    def forget_lists(self) -> None:
        """Empty the lists of all loaders, and keep the order in which their chains are registered."""
        self._forget_lists(lambda loader: loader.forget_lists())

    def forget_filled_lists(self, names: frozenset[str] | None) -> None:
        """The same for lists that packets may have changed."""
        self._forget_lists(lambda loader: loader.forget_filled_lists(names))

    def _forget_lists(self, forget: Callable[[Loader], None]) -> None:
        moved = False
        for loader in self._loaders:
            if loader.lists:
                forget(loader)
            if moved and not loader.registers_again:
                loader.register_again()
            moved = moved or loader.registers_again

    def watch(self) -> None:
        """Begin to watch the rules of the loaders that need it."""
        for loader in self._loaders:
            if loader.watches:
                loader.watch()

    def watched(self) -> Watched:
        """Return the joint observations of all loaders."""
        observations = [loader.watched() for loader in self._loaders if loader.watches]
        return Watched(
            prod((watched.rarest for watched in observations), start=_ONE),
            any(watched.lists for watched in observations),
            any(watched.dependent for watched in observations),
            settled=all(watched.settled for watched in observations)
            and not any(loader.chance for loader in self._loaders if not loader.watches),
        )

    def counters(self) -> Mapping[RuleId, int]:
        """Return the counters of the first loader that has any."""
        return next((counters for loader in self._loaders if (counters := loader.counters())), {})

    def close(self) -> None:
        """Close all loaders."""
        for loader in self._loaders:
            loader.close()
