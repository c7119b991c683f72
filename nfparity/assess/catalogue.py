"""The catalogues of known differences, read from ``catalogue.toml`` and ``ipvs/catalogue-ipvs.toml``.

Ids begin with K for changes from the iptables mode, and with I for changes from the ipvs mode.
"""

from __future__ import annotations

import tomllib
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from nfparity.assess.fate import Fate
from translate.dataclass import dataclass

__all__ = [
    "CATALOGUE",
    "IPVS_CATALOGUE",
    "Decided",
    "Entry",
    "Version",
    "catalogue",
    "entry",
    "every_entry",
    "ipvs_catalogue",
    "read_catalogue",
]

CATALOGUE: Final = Path(__file__).with_name("catalogue.toml")
IPVS_CATALOGUE: Final = Path(__file__).parent / "ipvs" / "catalogue-ipvs.toml"

Version = tuple[int, int]
"""A Kubernetes minor: 1.30 is ``(1, 30)``."""

_ANY: Final = "*"
_KEYS: Final = ("title", "trigger", "versions", "before", "after", "action", "source", "decided")


class Decided(StrEnum):
    """The way to decide whether a node has a difference."""

    REPLAY = "replay"
    """Packets on the real kernel show it."""
    FACTS = "facts"
    """Facts in the snapshot show it, without a packet."""
    OUT_OF_REACH = "out-of-reach"
    """Undecidable from a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One known difference. ``expects`` are pairs of fates, before and after; empty: any pair.

    ``last`` is None if the newest version still has it. ``reason`` explains why it is out of reach, and is
    empty otherwise.
    """

    id: str
    title: str
    trigger: str
    first: Version
    last: Version | None
    before: str
    after: str
    action: str
    source: str
    decided: Decided
    reason: str = ""
    expects: frozenset[tuple[Fate, Fate]] = frozenset()

    def holds_at(self, version: Version | None) -> bool:
        """True if this Kubernetes version has the difference; an unknown version (None) may have it."""
        return version is None or (self.first <= version and (self.last is None or version <= self.last))

    def allows(self, before: Fate, after: Fate) -> bool:
        """True if the catalogue expects this pair of fates."""
        return not self.expects or (before, after) in self.expects


@cache
def catalogue() -> tuple[Entry, ...]:
    """Return the changes from the iptables mode in the order of their ids."""
    return read_catalogue(CATALOGUE.read_text(encoding="utf-8"))


@cache
def ipvs_catalogue() -> tuple[Entry, ...]:
    """Return the changes from the ipvs mode in the order of their ids."""
    return read_catalogue(IPVS_CATALOGUE.read_text(encoding="utf-8"))


def every_entry() -> tuple[Entry, ...]:
    """Return the entries of both catalogues."""
    return (*catalogue(), *ipvs_catalogue())


@cache
def entry(k: str) -> Entry:
    """Return the entry with that id; KeyError when there is none."""
    for candidate in every_entry():
        if candidate.id == k:
            return candidate
    raise KeyError(k)


def read_catalogue(text: str) -> tuple[Entry, ...]:
    """Return the entries of a catalogue. Raises ValueError for missing or unknown keys and bad values."""
    return tuple(_entry(name, table) for name, table in sorted(tomllib.loads(text).items()))


def _entry(name: str, table: dict[str, object]) -> Entry:
    unknown = set(table) - {*_KEYS, "reason", "expects"}
    missing = set(_KEYS) - set(table)
    if unknown or missing:
        raise ValueError(f"{name}: missing {sorted(missing)}, not known {sorted(unknown)}")
    words = {key: table[key] for key in _KEYS if key != "versions"}
    empty = [key for key, value in words.items() if not isinstance(value, str) or not value]
    if empty:
        raise ValueError(f"{name}: expected text for {empty}")
    versions = table["versions"]
    if not isinstance(versions, list) or len(versions) != 2:
        raise ValueError(f"{name}: versions must be a list of the first and the last version")
    decided = Decided(str(table["decided"]))
    reason = str(table.get("reason", ""))
    if bool(reason) is not (decided is Decided.OUT_OF_REACH):
        raise ValueError(
            f"{name}: an entry that is out-of-reach needs a reason; other entries must not have one"
        )
    pairs = table.get("expects", [])
    if not isinstance(pairs, list) or bool(pairs) is not (decided is Decided.REPLAY):
        raise ValueError(
            f"{name}: an entry that a replay decides needs expectations; other entries must not have any"
        )
    return Entry(
        id=name,
        title=str(table["title"]),
        trigger=str(table["trigger"]),
        first=_version(name, str(versions[0])),
        last=_version(name, str(versions[1])) if versions[1] else None,
        before=str(table["before"]),
        after=str(table["after"]),
        action=str(table["action"]),
        source=str(table["source"]),
        decided=decided,
        reason=reason,
        expects=frozenset() if _ANY in pairs else frozenset(_pair(name, str(p)) for p in pairs),
    )


def _version(name: str, text: str) -> Version:
    major, dot, minor = text.partition(".")
    if not (dot and major.isdigit() and minor.isdigit()):
        raise ValueError(f"{name}: {text!r} is no Kubernetes minor")
    return int(major), int(minor)


def _pair(name: str, text: str) -> tuple[Fate, Fate]:
    before, arrow, after = (part.strip() for part in text.partition(">"))
    if not arrow:
        raise ValueError(f"{name}: {text!r} is not a pair of fates")
    return Fate(before), Fate(after)
