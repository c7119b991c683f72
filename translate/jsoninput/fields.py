"""Typed values from JSON objects: every problem is collected with its file, line and column.

A reader takes the keys that it knows one by one, reports wrong values, and reports the remaining keys at the
end. Nothing is raised before the whole input has been read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

from translate.dataclass import dataclass, field
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, parse_address
from translate.jsoninput.document import JsonDocument, Path, read_json

__all__ = ["MISSING", "JsonObject", "Problems", "json_kind", "parse_any_address", "read_object"]

_T = TypeVar("_T")
_NUMBER: Final = re.compile(r"-?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
_LONGEST: Final = 60


class _Missing:
    """The value of a missing key (a key with ``null`` is not missing)."""


MISSING: Final = _Missing()


@dataclass(slots=True)
class Problems:
    """Collects the faults of an input, up to ``limit`` diagnostics."""

    limit: int = 50
    diagnostics: list[Diagnostic] = field(default_factory=list)
    more: int = 0
    """The number of problems beyond the limit."""

    def add(self, origin: Origin, message: str, hint: str | None = None) -> None:
        """Add a problem."""
        self.extend((Diagnostic(origin, message, hint),))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add several problems."""
        for diagnostic in diagnostics:
            if len(self.diagnostics) < self.limit:
                self.diagnostics.append(diagnostic)
            else:
                self.more += 1

    @property
    def full(self) -> bool:
        """True if further problems are only counted."""
        return len(self.diagnostics) >= self.limit

    def raise_if_any(self) -> None:
        """Raise ParseError if there are problems."""
        if not self.diagnostics:
            return
        rest: tuple[Diagnostic, ...] = ()
        if self.more:
            last = max((d.origin for d in self.diagnostics), key=lambda o: (o.line, o.column))
            more = Origin(last.file, last.line, last.column)
            rest = (Diagnostic(more, f"and {self.more} more problems"),)
        raise ParseError((*self.diagnostics, *rest))


def parse_any_address(text: str) -> tuple[Family, int]:
    """Return family and integer of an IPv4 or IPv6 address; raises ValueError for other text."""
    family = Family.IP6 if ":" in text else Family.IP
    return family, parse_address(family, text)


def json_kind(value: object) -> str:
    """Return a description of a value, at most a line long."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {_shown(value)}"
        case list():
            return "a list"
        case _:
            return "an object"


def _shown(text: str) -> str:
    return repr(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")


def read_object(
    data: bytes | str, *, name: str, problems: Problems, expected: str = "an object"
) -> JsonObject:
    """Read a text that is one object. Raises ParseError with ``expected`` for any other value."""
    document = read_json(data, name=name)
    if not isinstance(document.value, dict):
        raise document.error((), f"expected {expected}, found {json_kind(document.value)}")
    return JsonObject(document, document.value, problems)


class JsonObject:
    """A JSON object and its place.

    Take each known key by name, then call :meth:`finish`. A wrong value is a problem and is replaced by the
    default, so that the rest can still be read. ``ok`` is False once this object or one inside it has a
    problem.
    """

    __slots__ = ("_document", "_parent", "_path", "_problems", "_taken", "data", "ok")

    def __init__(
        self,
        document: JsonDocument,
        data: dict[str, Any],
        problems: Problems,
        path: Path = (),
        parent: JsonObject | None = None,
    ) -> None:
        self.data = data
        self.ok = True
        self._document = document
        self._problems = problems
        self._path = path
        self._parent = parent
        self._taken: set[str] = set()

    @property
    def place(self) -> str:
        """``file:line`` of the object, if it is on one line."""
        return f"{self._document.name}:{self._document.line}"

    def problem(
        self, key: str | None, message: str, hint: str | None = None, *, index: int | None = None
    ) -> None:
        """Report a fault in the value of ``key``, in its item ``index``, or in the whole object."""
        reader: JsonObject | None = self
        while reader is not None:
            reader.ok = False
            reader = reader._parent
        if self._problems.full:
            self._problems.more += 1  # without its place, which takes long to find in a large input
        else:
            self._problems.extend(self.error(key, message, hint, index=index).diagnostics)

    def error(
        self, key: str | None, message: str, hint: str | None = None, *, index: int | None = None
    ) -> ParseError:
        """Return the error to raise for a fault after which nothing else can be read."""
        path = self._path if key is None else (*self._path, key)
        path = path if index is None else (*path, index)
        where = path_text(path)
        return self._document.error(path, f"{where}: {message}" if where else message, hint)

    def has(self, key: str) -> bool:
        """Return whether the object has the key, even with null."""
        return key in self.data

    def take(self, key: str) -> Any:
        """Return the raw value, or :data:`MISSING`."""
        self._taken.add(key)
        return self.data.get(key, MISSING)

    def text(self, key: str, default: _T) -> str | _T:
        """Return a string, or ``default`` without the key."""
        value = self.take(key)
        if isinstance(value, str):
            return value
        if value is not MISSING:
            self.problem(key, f"expected a string, found {json_kind(value)}")
        return default

    def integer(self, key: str, default: _T, *, low: int, high: int) -> int | _T:
        """Return an integer in ``low..high``, given as a number or as ``"0x…"``."""
        value = self.take(key)
        if value is MISSING:
            return default
        number = value
        if isinstance(value, str):
            if _NUMBER.fullmatch(value) is None:
                self.problem(key, f"expected a number, found {json_kind(value)}")
                return default
            number = int(value, 0 if value[:2].lower() == "0x" else 10)
        if not isinstance(number, int) or isinstance(number, bool):
            self.problem(key, f"expected a whole number, found {json_kind(value)}")
            return default
        if not low <= number <= high:
            self.problem(key, f"{value} is not in {low}-{high}")
            return default
        return number

    def number(self, key: str, default: float) -> float:
        """Return a finite, non-negative number."""
        value = self.take(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
            return float(value)
        if value is not MISSING:
            self.problem(key, f"expected a number that is not negative, found {json_kind(value)}")
        return default

    def flag(self, key: str) -> bool:
        """Return a boolean; False without the key."""
        value = self.take(key)
        if isinstance(value, bool):
            return value
        if value is not MISSING:
            self.problem(key, f"expected true or false, found {json_kind(value)}")
        return False

    def address(self, key: str) -> tuple[Family, int] | None:
        """Return an address with its family, or None if it is missing or wrong."""
        value = self.take(key)
        if value is MISSING:
            return None
        if isinstance(value, str):
            try:
                return parse_any_address(value)
            except ValueError:
                self.problem(key, f"{_shown(value)} is not an IP address")
        else:
            self.problem(key, f"expected an IP address, found {json_kind(value)}")
        return None

    def child(self, key: str, value: dict[str, Any], *, index: int | None = None) -> JsonObject:
        """Return a reader for an object inside this one; it shares the problems."""
        path = (*self._path, key) if index is None else (*self._path, key, index)
        return JsonObject(self._document, value, self._problems, path, self)

    def object(self, key: str) -> JsonObject | None:
        """Return a reader for the object in a key, or None without the key."""
        value = self.take(key)
        if isinstance(value, dict):
            return self.child(key, value)
        if value is not MISSING:
            self.problem(key, f"expected an object, found {json_kind(value)}")
        return None

    def items(self, key: str) -> list[Any]:
        """Return a list, which is empty without the key."""
        value = self.take(key)
        if isinstance(value, list):
            return value
        if value is not MISSING:
            self.problem(key, f"expected a list, found {json_kind(value)}")
        return []

    def objects(self, key: str) -> Iterator[JsonObject]:
        """Yield the objects of a list; none without the key."""
        for index, item in enumerate(self.items(key)):
            if isinstance(item, dict):
                yield self.child(key, item, index=index)
            else:
                self.problem(key, f"expected an object, found {json_kind(item)}", index=index)

    def finish(self) -> None:
        """Report every key that was not taken."""
        for key in self.data:
            if key not in self._taken:
                known = ", ".join(sorted(self._taken))
                self.problem(key, f"unknown key {_shown(key)}", f"known are {known}")


def path_text(path: Path) -> str:
    """Return a path for messages: ``then[0].reply``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if step.isprintable() and len(step) <= _LONGEST else _shown(step)
            text += f".{name}" if text else name
    return text
