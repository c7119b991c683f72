"""Differences between two states of the owned table, by chain, rule and element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TypeVar

from nfparity.watch.table_state import Collection, NftChainMeaning, TableState
from translate.dataclass import dataclass

__all__ = ["Change", "Drift", "drift"]

_T = TypeVar("_T")


class Change(StrEnum):
    """The kind of a difference from the applied rules."""

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One difference from the applied state.

    ``where`` names the object; None as a value means that the object is absent.
    """

    change: Change
    where: str
    applied: str | None
    live: str | None

    def line(self) -> str:
        """Return the difference as one line."""
        match self.change:
            case Change.MISSING:
                return f"missing: {self.where}" + (f": {self.applied}" if self.applied else "")
            case Change.EXTRA:
                return f"extra: {self.where}" + (f": {self.live}" if self.live else "")
            case Change.CHANGED:
                return f"changed: {self.where}: {self.applied} became {self.live}"

    def data(self) -> dict[str, str | None]:
        """Return the difference for JSON."""
        return {"change": self.change.value, "where": self.where, "applied": self.applied, "live": self.live}


def drift(applied: TableState, live: TableState) -> tuple[Drift, ...]:
    """Return every difference; empty if the states are equivalent."""
    return tuple(_differences(applied, live))


def _differences(applied: TableState, live: TableState) -> Iterator[Drift]:
    if applied.flags != live.flags:
        yield _changed(
            "flags of the table", ",".join(applied.flags) or "none", ",".join(live.flags) or "none"
        )
    for name, was, now in _pairs(applied.chains, live.chains):
        yield from _heads(f"chain {name}", was, now)
        if was is not None and now is not None:
            yield from _rules(f"chain {name}", was.rules, now.rules)
    for name, before, after in _pairs(applied.collections, live.collections):
        where = f"set or map {name}"
        yield from _heads(where, before, after)
        if before is not None and after is not None:
            yield from _texts(before.elements, after.elements, f"{where}, element ")
    yield from _texts(applied.others, live.others)


def _heads(
    where: str, was: NftChainMeaning | Collection | None, now: NftChainMeaning | Collection | None
) -> Iterator[Drift]:
    if was is None or now is None:
        yield _one_sided(where, None if was is None else "", None if now is None else "")
    elif was.head != now.head:
        yield _changed(where, was.head, now.head)


def _texts(was: Mapping[str, str], now: Mapping[str, str], prefix: str = "") -> Iterator[Drift]:
    for name, old, new in _pairs(was, now):
        if old is None or new is None:
            yield _one_sided(prefix + name, old, new)
        elif old != new:
            yield _changed(prefix + name, old, new)


def _rules(where: str, was: tuple[str, ...], now: tuple[str, ...]) -> Iterator[Drift]:
    if was == now:
        return
    for tag, i, j, k, m in SequenceMatcher(a=was, b=now, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        for n in range(max(j - i, m - k)):
            old = was[i + n] if i + n < j else None
            new = now[k + n] if k + n < m else None
            if old is not None and new is not None:
                yield _changed(f"{where}, rule {i + n + 1}", old, new)
            elif old is not None:
                yield _one_sided(f"{where}, rule {i + n + 1}", old, None)
            else:
                yield _one_sided(
                    f"{where}, before rule {i + 1}" if i < len(was) else f"{where}, at its end", None, new
                )


def _pairs(was: Mapping[str, _T], now: Mapping[str, _T]) -> Iterator[tuple[str, _T | None, _T | None]]:
    for name in (*was, *(n for n in now if n not in was)):
        yield name, was.get(name), now.get(name)


def _changed(where: str, was: str, now: str) -> Drift:
    return Drift(change=Change.CHANGED, where=where, applied=was, live=now)


def _one_sided(where: str, was: str | None, now: str | None) -> Drift:
    change = Change.EXTRA if was is None else Change.MISSING
    return Drift(change=change, where=where, applied=was, live=now)
