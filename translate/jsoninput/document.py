"""A JSON text, its value, and the place of every key and value in it.

Python's own scanner reads the text and keeps no positions. To report a fault, the text is read a second time
along the path to the value.

Stricter than :func:`json.loads`, because other programs read some texts differently, or because Python would
fail later: no key occurs twice in an object, numbers are finite and of at most 100 digits, values nest at
most :data:`DEEPEST` deep, and no string contains a lone surrogate.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, Final

from translate.errors import Diagnostic, ParseError
from translate.ir import Origin
from translate.plaintext import plain

__all__ = ["DEEPEST", "JsonDocument", "Path", "decode", "read_json"]

DEEPEST: Final = 100
"""The maximum nesting of lists and objects. An object of the Kubernetes API has some 20 levels."""

_MOST_DIGITS: Final = 100

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value from the outermost one."""

_TOKEN: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|-?Infinity|NaN|[][{},:]', re.DOTALL
)
_NEWLINE: Final = re.compile("\n")
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DOUBTFUL: Final = re.compile(rf"\\u[dD][89a-fA-F]|[0-9]{{{_MOST_DIGITS + 1}}}")
"""Finds surrogate escapes and long numbers; it also finds escaped backslashes and digits in strings."""


class JsonDocument:
    """The contents of a text, with the position of every value; made by :func:`read_json`."""

    __slots__ = ("_first", "_known", "_name", "_starts", "_text", "value")

    def __init__(self, value: Any, text: str, name: str, first: int = 1) -> None:
        self.value = value
        """The outermost value, as :func:`json.loads` returns it."""
        self._text = text
        self._name = name
        self._first = first
        self._known: dict[int, dict[str | int, tuple[int, int]]] = {}
        self._starts: list[int] | None = None

    @property
    def name(self) -> str:
        """The name of the file, for messages."""
        return self._name

    @property
    def line(self) -> int:
        """The line of the file at which the text begins."""
        return self._first

    def origin(self, path: Path = ()) -> Origin:
        """Return the place of a value; in an object, the place of its key.

        A missing value has the place of the innermost existing value around it.
        """
        at = shown = _skip(self._text, 0)
        for step in path:
            child = self._children(at).get(step)
            if child is None:
                break
            shown, at = child
        return self._origin(shown)

    def error(self, path: Path, message: str, hint: str | None = None) -> ParseError:
        """Return the error to raise for one value."""
        return ParseError((Diagnostic(self.origin(path), message, hint),))

    def _origin(self, offset: int) -> Origin:
        if self._starts is None:
            self._starts = [0, *(match.end() for match in _NEWLINE.finditer(self._text))]
        line = bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self._text)
        return Origin(self._name, self._first + line - 1, offset - start + 1, self._text[start:end])

    def _children(self, at: int) -> dict[str | int, tuple[int, int]]:
        """Return, by key or index, the place to report for each child and the place of its value."""
        if at not in self._known:
            self._known[at] = dict(_children(self._text, at))
        return self._known[at]


def _children(text: str, at: int) -> Iterator[tuple[str | int, tuple[int, int]]]:
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return
    at = _skip(text, at + 1)
    index = 0
    while text[at] not in "]}":
        shown = at
        key: str | int = index
        if opening == "{":
            key, at = _PLAIN.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield key, (shown, at)
        _, at = _PLAIN.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()


def read_json(data: bytes | str, *, name: str, line: int = 1, bytes_as_text: bool = False) -> JsonDocument:
    """Read one JSON value. ``name`` is the file name, and ``line`` the line at which the text begins.

    With ``bytes_as_text``, strings may contain the lone surrogates by which Python represents bytes that are
    not UTF-8 (``surrogateescape``). Raises ParseError with the place of the first fault.
    """
    text = data.removeprefix("\ufeff") if isinstance(data, str) else decode(data, name=name, line=line)
    text = text.rstrip(" \t\r\n")
    try:
        value = _STRICT.decode(text)
    except json.JSONDecodeError as e:
        before = _fault(text[: e.pos], bytes_as_text)
        if before is not None:
            raise _error(text, name, line, *before) from None
        place = JsonDocument(None, text, name, line)._origin(e.pos)
        raise ParseError((Diagnostic(place, f"not JSON: {e.msg[:1].lower()}{e.msg[1:]}"),)) from None
    except (ValueError, RecursionError):
        raise _explained(text, name, line, bytes_as_text) from None
    if _is_deep(value, text) or _DOUBTFUL.search(text):
        fault = _fault(text, bytes_as_text)
        if fault is not None:
            raise _error(text, name, line, *fault)
    return JsonDocument(value, text, name, line)


def decode(data: bytes, *, name: str, line: int = 1) -> str:
    """Return UTF-8 text without a byte order mark. Raises ParseError with the place of an invalid byte."""
    data = plain(data, name=name)
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        before = data[: e.start].decode("utf-8")
        column = len(before) - before.rfind("\n")
        place = Origin(name, line + before.count("\n"), column)
        raise ParseError((Diagnostic(place, f"not UTF-8 text: byte 0x{data[e.start]:02x}"),)) from None


def _explained(text: str, name: str, line: int, bytes_as_text: bool) -> ParseError:
    fault = _fault(text, bytes_as_text)
    return _error(text, name, line, *(fault or (0, "not readable as JSON")))


def _error(text: str, name: str, line: int, offset: int, message: str) -> ParseError:
    return ParseError((Diagnostic(JsonDocument(None, text, name, line)._origin(offset), message),))


def _is_deep(value: object, text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _fault(text: str, bytes_as_text: bool) -> tuple[int, str] | None:
    """Return a description of the first part that only Python accepts as JSON, and its position.

    This includes faults for which Python reports no place: too many levels, too many digits.
    """
    allowed = frozenset(map(chr, range(0xDC80, 0xDD00))) if bytes_as_text else frozenset()
    keys: list[set[str] | None] = []
    before = ""
    for match in _TOKEN.finditer(text):
        token, at = match[0], match.start()
        match token[0]:
            case "[" | "{":
                keys.append(set() if token == "{" else None)
                if len(keys) > DEEPEST:
                    return at, f"more than {DEEPEST} levels of lists and objects"
            case "]" | "}":
                del keys[-1:]
            case '"':
                try:
                    value = _PLAIN.decode(token)
                except ValueError:
                    return None  # not JSON for Python either, whose error the caller reports
                if any("\ud800" <= c <= "\udfff" and c not in allowed for c in value):
                    return at, "a string that holds half a character (a lone surrogate)"
                names = keys[-1] if keys else None
                if names is not None and before in ("{", ","):
                    if value in names:
                        return at, f"key {_shortened(value)} is given twice"
                    names.add(value)
            case "," | ":":
                pass
            case _:
                if not token[-1].isdigit():
                    return at, f"{token} is not a JSON number"
                if len(token) > _MOST_DIGITS:
                    return at, f"a number of {len(token)} characters; at most {_MOST_DIGITS} are allowed"
                if not math.isfinite(float(token)):
                    return at, f"{token} is too large a number"
        before = token
    return None


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:59] + "…")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError
    return members


def _constant(text: str) -> object:
    raise ValueError


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


_PLAIN: Final = json.JSONDecoder()
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_number)
