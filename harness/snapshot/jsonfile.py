"""A JSON file of a snapshot: what is wrong with it is said with its place."""

from __future__ import annotations

import json

from translate.errors import Diagnostic, ParseError
from translate.ir import Origin

__all__ = ["bad", "json_list", "json_object"]


def json_list(data: bytes, *, name: str) -> list[dict[str, object]]:
    """Return the objects of a list, as ``ip -j`` prints one; ParseError when it is something else.

    Empty objects are left out: old versions of iproute2 print one for everything that they filter.
    """
    value = _json(data, name)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise bad(name, "expected a list of objects, as ip -j prints it")
    return [one for one in value if one]


def json_object(data: bytes, *, name: str) -> dict[str, object]:
    """Return an object; ParseError when it is something else."""
    value = _json(data, name)
    if not isinstance(value, dict):
        raise bad(name, "expected an object")
    return value


def bad(name: str, message: str) -> ParseError:
    """Return the error for a file as a whole."""
    return ParseError((Diagnostic(Origin(name), message),))


def _json(data: bytes, name: str) -> object:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise ParseError((Diagnostic(Origin(name, line), "not UTF-8 text"),)) from e
    try:
        return json.loads(text)
    except json.JSONDecodeError as e:
        place = Origin(name, e.lineno, e.colno, text.split("\n")[e.lineno - 1])
        raise ParseError((Diagnostic(place, f"not JSON: {e.msg}"),)) from e
    except (ValueError, RecursionError) as e:
        raise bad(name, f"not JSON: {e}") from e
