"""JSON Lines: one object in each line."""

from __future__ import annotations

from collections.abc import Iterator

from translate.errors import ParseError
from translate.jsoninput.document import read_json
from translate.jsoninput.fields import JsonObject, Problems, json_kind
from translate.plaintext import plain

__all__ = ["json_lines"]


def json_lines(data: bytes, *, name: str, problems: Problems) -> Iterator[JsonObject]:
    """Yield the object of every line that is not blank; lines with anything else become ``problems``."""
    for number, line in enumerate(plain(data, name=name).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            document = read_json(line, name=name, line=number)
        except ParseError as e:
            problems.extend(e.diagnostics)
            continue
        if isinstance(document.value, dict):
            yield JsonObject(document, document.value, problems)
        else:
            problems.add(document.origin(), f"expected an object, found {json_kind(document.value)}")
