"""Differences between two states of a node, by table."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from nfparity.watch.drift import Change, Drift, drift
from nfparity.watch.table_state import TableState
from translate.dataclass import dataclass

__all__ = ["TableDrift", "compare_states"]


@dataclass(frozen=True, slots=True)
class TableDrift:
    """The differences of one table or ipset; empty if it has not changed."""

    table: str
    drift: tuple[Drift, ...]


def compare_states(
    before: Mapping[str, TableState], now: Mapping[str, TableState], *, ignored: Collection[str] = ()
) -> tuple[TableDrift, ...]:
    """Return an entry for every table of either state, by name.

    ``ignored`` are patterns of tables (``nft ip kube-proxy``) or of places in them (``* nat: chain KUBE-*``).
    """
    return tuple(
        TableDrift(table, tuple(_changes(table, before.get(table), now.get(table), ignored)))
        for table in sorted(before.keys() | now.keys())
        if not _is_ignored(table, ignored)
    )


def _changes(
    table: str, before: TableState | None, now: TableState | None, ignored: Collection[str]
) -> Iterator[Drift]:
    if before is None:
        yield Drift(change=Change.EXTRA, where="the table", applied=None, live="")
    elif now is None:
        yield Drift(change=Change.MISSING, where="the table", applied="", live=None)
    else:
        for change in drift(before, now):
            if not _is_ignored(f"{table}: {change.where}", ignored):
                yield change


def _is_ignored(place: str, ignored: Collection[str]) -> bool:
    return any(fnmatchcase(place, pattern) for pattern in ignored)
