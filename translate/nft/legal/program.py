"""Rules, chains and the whole Program in legal form."""

from __future__ import annotations

from collections.abc import Mapping

from translate.dataclass import dataclass, field
from translate.errors import Note
from translate.ir import Family, Hook, Origin, Policy
from translate.nft.legal.containers import FilledSet, LegalMap
from translate.nft.legal.lists import LegalList
from translate.nft.legal.objects import SharedObject
from translate.nft.legal.parts import Part

__all__ = ["BaseHook", "LegalChain", "LegalProgram", "LegalRule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalRule:
    """One nft rule. ``calls`` are the chains that it can jump or go to."""

    parts: tuple[Part, ...]
    calls: tuple[str, ...] = ()
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseHook:
    """The hook and priority of a base chain, and its policy."""

    type: str
    hook: Hook
    priority: int
    policy: Policy


@dataclass(slots=True, kw_only=True)
class LegalChain:
    """A chain under construction; ``name`` is nft's, and ``note`` describes the chain.

    ``hooks`` are those from which packets come to the chain, where a decision depends on them.
    """

    name: str
    note: str
    origin: Origin
    base: BaseHook | None = None
    hooks: frozenset[Hook] = frozenset()
    rules: list[LegalRule] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalProgram:
    """A Program in legal form. ``called`` maps qualified names of chains to nft's."""

    family: Family
    chains: tuple[LegalChain, ...]
    called: Mapping[str, str]
    maps: tuple[LegalMap, ...]
    sets: tuple[FilledSet, ...]
    objects: tuple[SharedObject, ...]
    notes: tuple[Note, ...] = ()
    lists: tuple[LegalList, ...] = ()
