"""Shapes that JSON values must have, for data that is then used without further checks.

For the output of other programs (nft, the API server): unknown keys are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from translate.dataclass import dataclass, field
from translate.jsoninput.document import Path
from translate.jsoninput.fields import json_kind

__all__ = ["FLAG", "NUMBER", "OBJECT", "TEXT", "Fields", "Items", "Leaf", "Shape", "one_or_more"]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that passes a test; ``expected`` describes these values."""

    test: Callable[[object], bool]
    expected: str

    def faults(self, value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
        """Yield the path and the description of every fault."""
        if not self.test(value):
            yield path, f"expected {self.expected}, found {json_kind(value)}"


@dataclass(frozen=True, slots=True)
class Items:
    """A list of values of one shape."""

    of: Shape

    def faults(self, value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
        """Yield the path and the description of every fault."""
        if not isinstance(value, list):
            yield path, f"expected a list, found {json_kind(value)}"
            return
        for index, item in enumerate(value):
            yield from self.of.faults(item, (*path, index))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """An object with given keys; ``optional`` keys may be missing, and may be null if ``null`` is true."""

    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)
    null: bool = True

    def faults(self, value: object, path: Path = ()) -> Iterator[tuple[Path, str]]:
        """Yield the path and the description of every fault."""
        if not isinstance(value, dict):
            yield path, f"expected an object, found {json_kind(value)}"
            return
        for key, shape in self.required.items():
            if key in value:
                yield from shape.faults(value[key], (*path, key))
            else:
                yield path, f"{key} is missing"
        for key, shape in self.optional.items():
            if key in value and not (self.null and value[key] is None):
                yield from shape.faults(value[key], (*path, key))


Shape = Leaf | Items | Fields


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


TEXT: Final = Leaf(lambda value: isinstance(value, str), "a string")
FLAG: Final = Leaf(lambda value: isinstance(value, bool), "true or false")
NUMBER: Final = Leaf(_is_number, "a whole number that is not negative")
OBJECT: Final = Leaf(lambda value: isinstance(value, dict), "an object")


def one_or_more(leaf: Leaf) -> Leaf:
    """Return the shape of one value like ``leaf``, or of a list of them."""

    def test(value: object) -> bool:
        return leaf.test(value) or (isinstance(value, list) and all(map(leaf.test, value)))

    return Leaf(test, f"{leaf.expected}, or a list of them")
