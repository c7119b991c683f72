"""Declarations of sets and maps, from JSON to text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from translate.nftlisting.commands import GivenSet

__all__ = ["declaration", "flags_of", "lost", "needs_text"]

_WIDTHLESS: Final = "integer"
_STATEMENTS: Final = ("counter", "limit", "quota", "ct count")


def needs_text(entry: Mapping[str, Any], *, dynamic: bool) -> bool:
    """Return whether nft's JSON cannot declare a set or map exactly."""
    data = entry.get("map")
    several = isinstance(data, str) and " . " in data
    return dynamic or several or "stmt" in entry or "dynamic" in flags_of(entry) or _spans(entry)


def lost(entry: Mapping[str, Any]) -> str | None:
    """Return the reason why JSON cannot express a set or map, or why nft refuses it, or None."""
    key, data = _types(entry.get("type")), _types(entry.get("map"))
    if _WIDTHLESS in (*(key or ()), *(data or ())):
        return "one of its types is an integer (such as a vlan id), whose width JSON omits"
    if not needs_text(entry, dynamic=False):
        return None
    if key is None or data is None:
        return f"its types are not names: {json.dumps([entry.get('type'), entry.get('map')])}"
    for statement in entry.get("stmt", ()):
        kind = next(iter(statement), "")
        if kind not in _STATEMENTS:
            return f"its elements have {kind}"
    if any(
        element == "*" or (isinstance(element, list) and element[:1] == ["*"])
        for element in entry.get("elem", ())
    ):
        return "the map has an element for all other keys, and nft 1.0.6 crashes on it"
    return None


def declaration(kind: str, where: GivenSet, entry: Mapping[str, Any], *, dynamic: bool) -> str:
    """Return the command that declares a set or map without its elements."""
    key, data = _types(entry["type"]), _types(entry.get("map"))
    assert key is not None
    of = " . ".join(key)
    if kind == "map":
        assert data is not None
        of += f" : {'interval ' if _spans(entry) else ''}{' . '.join(data)}"
    flags = [flag for flag in flags_of(entry) if flag != "dynamic"]
    dynamic = dynamic or "dynamic" in flags_of(entry) or bool(entry.get("stmt"))
    parts = [f"type {of}"]
    if dynamic or flags:
        parts.append(f"flags {','.join([*flags, *['dynamic'] * dynamic])}")
    parts += [f"{word} {entry[word]}s" for word in ("timeout", "gc-interval") if word in entry]
    parts += [f"{word} {entry[word]}" for word in ("size", "policy") if word in entry]
    if entry.get("auto-merge"):
        parts.append("auto-merge")
    if "comment" in entry:
        parts.append(f'comment "{entry["comment"]}"')
    parts += [_statement(*item) for statement in entry.get("stmt", ()) for item in statement.items()]
    return f"add {kind} {where} {{ {'; '.join(parts)}; }}"


def flags_of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the flags of an entry; newer versions of nft print a single flag without a list."""
    flags = entry.get("flags", ())
    return (flags,) if isinstance(flags, str) else tuple(flags)


def _types(value: object) -> tuple[str, ...] | None:
    """Return the names of types: one, a list, or several in one string, as for a map's data."""
    match value:
        case None:
            return ()
        case str():
            return tuple(value.split(" . "))
        case list() if all(isinstance(part, str) for part in value):
            return tuple(str(part) for part in value)
    return None


def _spans(entry: Mapping[str, Any]) -> bool:
    """Return whether the data of a map's elements are intervals."""
    pairs = (pair for pair in entry.get("elem", ()) if isinstance(pair, list) and len(pair) == 2)
    return any(_is_interval(data) for _, data in pairs)


def _is_interval(data: object) -> bool:
    if not isinstance(data, dict):
        return False
    parts = data.get("concat")
    return bool(data.keys() & {"range", "prefix"}) or (
        isinstance(parts, list) and any(_is_interval(part) for part in parts)
    )


def _statement(kind: str, value: Any) -> str:
    fields = value if isinstance(value, dict) else {}
    over = "over " if fields.get("inv") else ""
    match kind:
        case "limit":
            unit = f" {fields['rate_unit']}" if "rate_unit" in fields else ""
            burst = (
                f" burst {fields['burst']} {fields.get('burst_unit', 'packets')}" if "burst" in fields else ""
            )
            return f"limit rate {over}{fields['rate']}{unit}/{fields.get('per', 'second')}{burst}"
        case "quota":
            return f"quota {over}{fields['val']} {fields.get('val_unit', 'bytes')}"
        case "ct count":
            return f"ct count {over}{fields['val']}"
        case _:
            return kind
