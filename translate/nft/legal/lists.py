"""Lists of ``-m recent`` and the sets that replace them."""

from __future__ import annotations

from translate.dataclass import dataclass
from translate.ir import Field, Value
from translate.nft.legal.containers import FilledSet

__all__ = ["LegalList", "Ring"]


@dataclass(frozen=True, slots=True)
class Ring:
    """The sets that hold the last times of each address.

    Other sets record which of these times is replaced next.
    """

    times: tuple[FilledSet, ...]
    turns: tuple[FilledSet, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LegalList:
    """The sets that replace one list of ``-m recent``.

    ``key`` are the fields and values that follow the address in a key of the sets, if these replace several
    lists.
    """

    name: str
    key: tuple[tuple[Field, Value], ...]
    sets: tuple[FilledSet, ...]
    rings: tuple[Ring, ...]
