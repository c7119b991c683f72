"""The state that rules leave for later packets of a run: counters, buckets, lists and sets."""

from __future__ import annotations

from typing import Final

from backends.simulator.chance.chooser import Chance
from backends.simulator.chance.ports import Ports
from backends.simulator.matching.assumptions import Assumptions
from backends.simulator.matching.connlimits import ConnectionLists
from backends.simulator.matching.filledsets import FilledSets
from backends.simulator.matching.hashlimits import HashTables
from backends.simulator.matching.recent import RecentLists
from translate.dataclass import dataclass, field
from translate.ir import BYTE_TESTS, Account, AnyOf, CgroupTest, FieldTest, Random, Rule, SetTest

__all__ = ["Memory", "leaves_state"]


@dataclass(slots=True)
class Memory:
    """The state of one run that tests read, apart from the packet."""

    chance: Chance
    ports: Ports
    lists: RecentLists
    assumptions: Assumptions
    tables: HashTables
    connections: ConnectionLists
    sets: FilledSets = field(default_factory=lambda: FilledSets({}))
    counters: dict[object, int] = field(default_factory=dict)
    """The counter of each Nth, by rule and test."""
    buckets: dict[object, int] = field(default_factory=dict)
    """The time in nanoseconds at which the bucket of each Limit that packets have reached is full again."""
    idle_buckets: dict[object, int] = field(default_factory=dict)
    """The same times for Limits of rules that have only side effects, such as logging."""
    quotas: dict[object, int] = field(default_factory=dict)
    """The bytes that are left of each Quota that packets have reached."""
    keeps_state: bool = True
    """False if no rule leaves state here, apart from ports (:func:`leaves_state`)."""

    def begin(self, chance: Chance) -> None:
        """Forget everything, for another run."""
        self.chance = chance
        self.ports.begin(chance)
        if not self.keeps_state:
            return
        self.lists.begin()
        self.assumptions.begin(chance)
        self.counters.clear()
        self.buckets.clear()
        self.idle_buckets.clear()
        self.quotas.clear()
        self.tables.begin()
        self.connections.lists.clear()
        self.sets.begin()

    def is_blank(self) -> bool:
        """Return whether the run has no state yet except its choices."""
        if self.ports.picked:
            return False
        if not self.keeps_state:
            return True
        known = self.holds_any or self.counters or self.idle_buckets or self.lists.addresses
        return not (known or self.assumptions.made or self.sets.changed)

    @property
    def holds_any(self) -> bool:
        """Return whether there is state that could affect the packets of another flow."""
        return self._holds_others or self.lists.holds_any

    @property
    def filled(self) -> frozenset[str] | None:
        """The lists of ``-m recent`` that have addresses; None if there is other state that could do so."""
        return None if self._holds_others else self.lists.filled

    @property
    def _holds_others(self) -> bool:
        known = self.buckets or self.quotas or self.tables.holds_any or self.connections.lists
        return bool(known or self.sets.changed)


_STATELESS: Final = (FieldTest, AnyOf, Random, Account, SetTest, CgroupTest, *BYTE_TESTS)
"""Tests that leave nothing in a :class:`Memory`, except that they narrow a port that the kernel picked."""


def leaves_state(rule: Rule) -> bool:
    """Return whether a rule may leave state in a :class:`Memory`: its tests do, or it has hidden parts."""
    return bool(rule.unknown) or not all(isinstance(test, _STATELESS) for test in rule.tests)
