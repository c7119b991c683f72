"""The elements of nft maps and sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from translate.dataclass import dataclass
from translate.ir import Origin
from translate.nft.comments import place_comment

__all__ = ["Elements", "ListedElements", "NftElement", "element_text", "place_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NftElement:
    """One element of a map or set; ``data`` is None in a set."""

    key: str
    data: str | None
    origin: Origin


class Elements(Protocol):
    """The elements of one map or set, in order. Equal objects have the same elements."""

    @property
    def count(self) -> int:
        """The number of elements."""
        ...

    def listed(self) -> tuple[NftElement, ...]:
        """Return the elements."""
        ...

    def texts(self) -> Iterator[str]:
        """Yield each element as :func:`element_text` writes it."""
        ...


@dataclass(frozen=True, slots=True)
class ListedElements:
    """Elements in a tuple."""

    elements: tuple[NftElement, ...]

    @property
    def count(self) -> int:
        """The number of elements."""
        return len(self.elements)

    def listed(self) -> tuple[NftElement, ...]:
        """Return the elements."""
        return self.elements

    def texts(self) -> Iterator[str]:
        """Yield each element as :func:`element_text` writes it."""
        return map(element_text, self.elements)


def element_text(element: NftElement) -> str:
    """Return the text of an element of a map or set, with the comment and line number of its rule."""
    data = "" if element.data is None else f" : {element.data}"
    return f"{element.key}{place_text(element.origin)}{data}"


def place_text(origin: Origin) -> str:
    """Return the comment for an origin after a space; empty without a line."""
    return f" comment {place_comment(origin)}" if origin.line else ""
