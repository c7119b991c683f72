"""A selection of rules of a ruleset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence

from translate.dataclass import dataclass
from translate.ir import Ruleset, TableName

__all__ = ["Place", "Selection"]

Place = tuple[TableName, str, int]
"""A rule: its table, its chain and its index there, from 0."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The chosen rules of each chain, by their indexes, which ascend."""

    _rules: Mapping[tuple[TableName, str], Mapping[int, None]]

    @classmethod
    def of_places(cls, places: Iterable[Place]) -> Selection:
        """Return the selection of these rules."""
        rules: dict[tuple[TableName, str], dict[int, None]] = {}
        for table, chain, index in sorted(places):
            rules.setdefault((table, chain), {})[index] = None
        return cls(rules)

    @classmethod
    def without(cls, ruleset: Ruleset, left_out: Collection[Place]) -> Selection:
        """Return the selection of all other rules."""
        every = (
            (table.name, chain.name, index)
            for table in ruleset.tables
            for chain in table.chains
            for index in range(len(chain.rules))
        )
        return cls.of_places(place for place in every if place not in left_out)

    def of(self, table: TableName, chain: str) -> Collection[int]:
        """Return the chosen rules of a chain."""
        return self._rules.get((table, chain), {})

    def has(self, table: TableName, chain: str, index: int) -> bool:
        """Return whether the rule is chosen."""
        rules = self._rules.get((table, chain))
        return rules is not None and index in rules

    def among(self, table: TableName, chain: str, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the chosen rules among ``positions``, which are in ascending order."""
        chosen = self.of(table, chain)
        if len(chosen) < len(positions) // 64:
            return tuple([i for i in chosen if _contains(positions, i)])
        return tuple([i for i in positions if i in chosen])


def _contains(positions: Sequence[int], index: int) -> bool:
    at = bisect_left(positions, index)
    return at < len(positions) and positions[at] == index
