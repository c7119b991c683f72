"""A registry of extensions that imports the file of each when it is first needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TypeVar

from translate.read.extensions.declaration import MatchExtension, TargetExtension

__all__ = ["Registry"]

E = TypeVar("E", bound=MatchExtension | TargetExtension)


class Registry(Mapping[str, E]):
    """Extensions of one kind by name.

    ``places`` has the file and the constant of each. The constant is the extension, or a tuple of extensions.
    """

    def __init__(self, kind: type[E], places: Mapping[str, str]) -> None:
        self._kind = kind
        self._places = places
        self._imported: dict[str, E] = {}

    def __getitem__(self, name: str) -> E:
        """Return an extension. Raises KeyError for an unknown name."""
        extension = self._imported.get(name)
        if extension is None:
            extension = self._imported[name] = self._import(name, self._places[name])
        return extension

    def _import(self, name: str, place: str) -> E:
        file, _, constant = place.partition(".")
        declared = getattr(import_module(f"translate.read.extensions.{file}"), constant)
        extensions = declared if isinstance(declared, tuple) else (declared,)
        (extension,) = (each for each in extensions if each.name == name)
        assert isinstance(extension, self._kind), f"{place} is of another kind"
        return extension

    def __contains__(self, name: object) -> bool:
        """Return whether there is such an extension, without importing it."""
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._places)

    def __len__(self) -> int:
        """Return the number of extensions."""
        return len(self._places)
