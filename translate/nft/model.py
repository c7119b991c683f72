"""The structure of one nftables table, between the legal Program and its text.

Names are final; keys, tests and verdicts are text. Layout, quoting and comments are added by ``render``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from translate.dataclass import dataclass
from translate.ir import Origin
from translate.nft.elements import Elements, ListedElements
from translate.nft.legal import BaseHook, SharedObject
from translate.nft.map_size import map_size_for

__all__ = ["NftChain", "NftFlowtable", "NftList", "NftMap", "NftRing", "NftRule", "NftSet", "NftTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftRule:
    """One rule: its matches and statements as text, and the chains that it can jump or go to."""

    parts: tuple[str, ...]
    targets: tuple[str, ...] = ()
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class NftMap:
    """A named map, or a named set with constant elements.

    ``key`` is the expression that gives the type of its keys. ``data`` is ``verdict``, the expression that
    gives the type of its data, or None for a set. An element is identified by the map's name and its own key.
    ``note`` describes the map if its name does not.
    """

    name: str
    key: str
    data: str | None
    interval: bool
    elements: Elements
    note: str = ""

    @property
    def size(self) -> int | None:
        """The declared size, or None. A set of intervals is not a hash table and needs none."""
        return None if self.interval else map_size_for(self.elements.count)


_NO_ELEMENTS: Final = ListedElements(())


@dataclass(frozen=True, slots=True, kw_only=True)
class NftSet:
    """A named set that packets fill.

    ``timeout`` is in seconds; with None, a key stays forever. ``ends``: the rules that add a key may give it
    a timeout of its own. ``elements`` are in the set from the beginning.
    """

    name: str
    key: str
    size: int
    timeout: int | None
    note: str
    ends: bool = False
    elements: Elements = _NO_ELEMENTS


@dataclass(frozen=True, slots=True)
class NftRing:
    """The names of the sets that hold the last times of each address.

    Other sets record which of these times is replaced next.
    """

    times: tuple[str, ...]
    turns: tuple[str, ...]
    seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NftList:
    """The sets that replace the list ``name`` of ``-m recent``.

    ``sets`` has the name of each set with its timeout in seconds (None: no timeout). ``key`` are the parts
    that follow the address in a key. No set has more than ``size`` elements.
    """

    name: str
    key: tuple[str, ...]
    sets: tuple[tuple[str, int | None], ...]
    rings: tuple[NftRing, ...]
    size: int

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its sets."""
        rings = (name for ring in self.rings for name in (*ring.times, *ring.turns))
        return (*(name for name, _ in self.sets), *rings)


@dataclass(frozen=True, slots=True, kw_only=True)
class NftFlowtable:
    """A flowtable, which forwards packets of its connections that arrive on its devices."""

    name: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftChain:
    """A chain; ``base`` is None for a chain without a hook, and ``note`` describes the chain."""

    name: str
    note: str
    origin: Origin
    base: BaseHook | None
    rules: tuple[NftRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftTable:
    """The table with all objects. ``lists`` shows which sets replace which list of ``-m recent``."""

    family: str
    name: str
    sets: Sequence[NftSet]
    objects: Sequence[SharedObject]
    maps: Sequence[NftMap]
    chains: Sequence[NftChain]
    flowtables: Sequence[NftFlowtable] = ()
    lists: Sequence[NftList] = ()
