"""Typed reading of JSON objects: every problem is kept with its file, line and column.

A reader takes keys one by one, says what is wrong with each, and at the end names the keys that
nobody asked for. Nothing is raised before the whole input has been seen.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final, TypeVar

from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, parse_address

__all__ = ["MISSING", "JsonObject", "Problems", "json_lines", "parse_any_address"]

_T = TypeVar("_T")


class _Missing:
    """The value of a key that is not there (``null`` is there)."""


MISSING: Final = _Missing()


@dataclass(slots=True)
class Problems:
    """Collects what is wrong with an input, up to ``limit`` diagnostics."""

    limit: int = 50
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, origin: Origin, message: str, hint: str | None = None) -> None:
        """Keep one problem."""
        self.found.append(Diagnostic(origin, message, hint))

    def raise_if_any(self) -> None:
        """Raise ParseError when anything was found."""
        if not self.found:
            return
        shown = self.found[: self.limit]
        rest = len(self.found) - len(shown)
        if rest:
            shown.append(Diagnostic(Origin(shown[-1].origin.file), f"and {rest} more problems"))
        raise ParseError(tuple(shown))


def parse_any_address(text: str) -> tuple[Family, int]:
    """Return family and integer of an IPv4 or IPv6 address; ValueError when it is neither."""
    family = Family.IP6 if ":" in text else Family.IP
    return family, parse_address(family, text)


def json_lines(data: bytes, *, name: str, problems: Problems) -> list[JsonObject]:
    """Return the objects of a JSON Lines text, one a line; blank lines count but mean nothing."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as e:
        problems.add(
            Origin(name, data.count(b"\n", 0, e.start) + 1), f"not UTF-8 text: byte 0x{data[e.start]:02x}"
        )
        return []
    objects = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        origin = Origin(name, number, 0, line)
        try:
            value = json.loads(line, object_pairs_hook=_unique, parse_constant=_no_constant)
        except json.JSONDecodeError as e:
            problems.add(origin.at(e.colno), f"not JSON: {e.msg.lower()}")
        except (ValueError, RecursionError) as e:
            problems.add(origin, f"not JSON: {e}")
        else:
            if isinstance(value, dict):
                objects.append(JsonObject(value, origin, problems))
            else:
                problems.add(origin.at(1), f"expected an object, found {_kind(value)}")
    return objects


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [k for k, _ in pairs]
        twice = next(k for k in names if names.count(k) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return found


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not a JSON number")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {value!r}"
        case list():
            return "a list"
        case _:
            return "an object"


class JsonObject:
    """One JSON object and the place where it stands.

    Take what is meant by name, then call :meth:`finish`. A wrong value is a problem and counts as
    the default, so that the rest can still be read. ``ok`` is False once this object, or one
    inside it, has had a problem.
    """

    def __init__(
        self, data: dict[str, object], origin: Origin, problems: Problems, *, path: str = ""
    ) -> None:
        self.data = data
        self.origin = origin
        self.ok = True
        self._problems = problems
        self._path = path
        self._taken: set[str] = set()
        self._parent: JsonObject | None = None

    def problem(self, key: str | None, message: str, hint: str | None = None) -> None:
        """Say what is wrong with the value of ``key`` (None: with the object as a whole)."""
        reader: JsonObject | None = self
        while reader is not None:
            reader.ok = False
            reader = reader._parent
        where = f"{self._path}{key}" if key is not None else self._path.rstrip(".")
        column = self.origin.text.find(f'"{key}"') + 1 if key is not None else 0
        self._problems.add(self.origin.at(column), f"{where}: {message}" if where else message, hint)

    def has(self, key: str) -> bool:
        """Whether the key is there, even as null."""
        return key in self.data

    def take(self, key: str) -> object:
        """Return the raw value, or :data:`MISSING`."""
        self._taken.add(key)
        return self.data.get(key, MISSING)

    def text(self, key: str, default: _T) -> str | _T:
        """Return a string, or ``default`` when it is not there."""
        value = self.take(key)
        if isinstance(value, str):
            if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value):
                return value
            self.problem(key, "holds half a character (a lone surrogate)")
        elif value is not MISSING:
            self.problem(key, f"expected a string, found {_kind(value)}")
        return default

    def integer(self, key: str, default: _T, *, low: int, high: int) -> int | _T:
        """Return an integer in ``low..high``, given as a number or as ``"0x…"``."""
        value = self.take(key)
        if value is MISSING:
            return default
        if isinstance(value, str):
            try:
                value = int(value, 16 if value.lower().startswith("0x") else 10)
            except ValueError:
                self.problem(key, f"expected a number, found {_kind(value)}")
                return default
        if not isinstance(value, int) or isinstance(value, bool):
            self.problem(key, f"expected a whole number, found {_kind(value)}")
            return default
        if not low <= value <= high:
            self.problem(key, f"{value} is not in {low}-{high}")
            return default
        return value

    def number(self, key: str, default: float) -> float:
        """Return a finite number that is not negative."""
        value = self.take(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
            return float(value)
        if value is not MISSING:
            self.problem(key, f"expected a number that is not negative, found {_kind(value)}")
        return default

    def flag(self, key: str) -> bool:
        """Return a boolean; False when it is not there."""
        value = self.take(key)
        if isinstance(value, bool):
            return value
        if value is not MISSING:
            self.problem(key, f"expected true or false, found {_kind(value)}")
        return False

    def address(self, key: str) -> tuple[Family, int] | None:
        """Return an address with its family, or None when it is not there or wrong."""
        value = self.take(key)
        if value is MISSING:
            return None
        if isinstance(value, str):
            try:
                return parse_any_address(value)
            except ValueError:
                self.problem(key, f"{value!r} is not an IP address")
        else:
            self.problem(key, f"expected an IP address, found {_kind(value)}")
        return None

    def child(self, key: str, value: dict[str, object]) -> JsonObject:
        """Return a reader for an object inside this one; its problems are this one's too."""
        inner = JsonObject(value, self.origin, self._problems, path=f"{self._path}{key}.")
        inner._parent = self
        return inner

    def objects(self, key: str) -> list[JsonObject]:
        """Return the objects of a list; an empty list when it is not there."""
        value = self.take(key)
        if value is MISSING:
            return []
        if not isinstance(value, list):
            self.problem(key, f"expected a list, found {_kind(value)}")
            return []
        found = []
        for i, one in enumerate(value):
            if isinstance(one, dict):
                found.append(self.child(f"{key}[{i}]", one))
            else:
                self.problem(key, f"item {i}: expected an object, found {_kind(one)}")
        return found

    def finish(self) -> None:
        """Name every key that was not taken."""
        for key in self.data:
            if key not in self._taken:
                known = ", ".join(sorted(self._taken))
                self.problem(key, f"unknown key {key!r}", f"known are {known}")
