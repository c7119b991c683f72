"""Reader of JSON files of a snapshot: lists of objects (output of ``ip -j``), and objects."""

from __future__ import annotations

from translate.jsoninput import JsonObject, Problems, json_kind, read_json, read_object

__all__ = ["read_list", "read_mapping"]


def read_list(data: bytes, *, name: str) -> list[JsonObject]:
    """Return the objects of a list in the format of ``ip -j``; ParseError for anything else.

    Empty objects are left out: old versions of iproute2 print one for everything that they filter out.
    """
    document = read_json(data, name=name)
    value, hint = document.value, "ip -j prints a list of objects"
    if not isinstance(value, list):
        raise document.error((), f"expected a list, found {json_kind(value)}", hint)
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            raise document.error((index,), f"expected an object, found {json_kind(item)}", hint)
    problems = Problems(limit=1)
    return [JsonObject(document, item, problems, (index,)) for index, item in enumerate(value) if item]


def read_mapping(data: bytes, *, name: str) -> JsonObject:
    """Return an object; ParseError for anything else."""
    return read_object(data, name=name, problems=Problems(limit=1))
