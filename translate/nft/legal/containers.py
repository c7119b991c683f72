"""Maps and sets of the legal form, with their keys and elements."""

from __future__ import annotations

from typing import Literal

from translate.dataclass import dataclass
from translate.ir import Action, Entry, Field, Lookup

__all__ = ["DnatTarget", "Draw", "Element", "FilledSet", "Key", "LegalMap", "Masked"]


@dataclass(frozen=True, slots=True)
class Masked:
    """An address of the packet under a mask."""

    field: Field
    mask: int


@dataclass(frozen=True, slots=True)
class Draw:
    """A random number below ``below``."""

    below: int


Key = tuple[Field | Masked | Draw, ...]
"""The key of a map or set: its parts, in order."""


@dataclass(frozen=True, slots=True)
class DnatTarget:
    """The data of a map of DNAT targets: an address, and a port if ``ported``."""

    ported: bool


@dataclass(frozen=True, slots=True)
class Element:
    """One entry of a container: its key, its origin, and its verdict or DNAT target in a map."""

    entry: Entry
    data: Action | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalMap:
    """A verdict map, a map of DNAT targets (``data`` is a :class:`DnatTarget`), or a set (``data`` is None).

    ``elements`` are made from the entries of ``lookup``, which is None if there was no Lookup.
    """

    name: str
    key: Key
    data: Literal["verdict"] | DnatTarget | None
    interval: bool
    elements: tuple[Element, ...]
    lookup: Lookup | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilledSet:
    """A set that packets fill.

    ``timeout`` is in seconds; with None, a key stays forever. ``ends``: the rules that add a key may give it
    a timeout of its own. ``elements`` are in the set from the beginning.
    """

    name: str
    key: Key
    size: int
    timeout: int | None
    note: str
    ends: bool = False
    elements: tuple[Element, ...] = ()
