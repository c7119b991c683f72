"""The tests of a rule as a table: the combinations of values with which it matches.

``meta l4proto tcp`` and a set of ``meta l4proto . th dport`` in one rule are one table of two columns, whose
rows are those of the set with ``tcp``. So the effect of a test in addition to the other tests of its rule can
be computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["MatchTable"]

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MatchTable:
    """Rows of values for the sorted ``fields``: a packet matches if its values are those of one row.

    A prefix or a range is a value like any other: it is equal only to itself.
    """

    fields: tuple[str, ...] = ()
    rows: frozenset[Row] = frozenset({()})

    @classmethod
    def of(cls, fields: Iterable[str], rows: Iterable[Row]) -> MatchTable:
        """Return the table of rows whose values are in the order of ``fields``."""
        names = tuple(fields)
        order = sorted(range(len(names)), key=lambda i: names[i])
        return cls(tuple(names[i] for i in order), frozenset(tuple(row[i] for i in order) for row in rows))

    def joined(self, other: MatchTable) -> MatchTable:
        """Return the table of the packets that match both tables."""
        fields = tuple(sorted({*self.fields, *other.fields}))
        rows = set()
        for row, other_row in itertools.product(self.rows, other.rows):
            own, others = (
                dict(zip(self.fields, row, strict=True)),
                dict(zip(other.fields, other_row, strict=True)),
            )
            if all(_may_be_one(own[f], others[f]) for f in own.keys() & others.keys()):
                rows.add(tuple(_narrower(own.get(f), others.get(f)) for f in fields))
        return MatchTable(fields, frozenset(rows))

    def beyond(self, other: MatchTable) -> MatchTable:
        """Return the rows that ``other`` does not completely contain."""
        if not set(other.fields) <= set(self.fields):
            return self
        at = [self.fields.index(field) for field in other.fields]
        rows = (row for row in self.rows if tuple(row[i] for i in at) not in other.rows)
        return MatchTable(self.fields, frozenset(rows))

    @property
    def is_empty(self) -> bool:
        """True if no packet matches."""
        return not self.rows


def _may_be_one(first: str, second: str) -> bool:
    return first == second or not (_is_point(first) and _is_point(second))


def _narrower(first: str | None, second: str | None) -> str:
    if first is None or second is None:
        return first or second or ""
    if first == second or _is_point(first):
        return first
    return second if _is_point(second) else f"{first} & {second}"


def _is_point(value: str) -> bool:
    return not any(mark in value for mark in "/-&*")
