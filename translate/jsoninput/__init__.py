"""Input in JSON: every fault is reported with its file, line and column.

``document`` reads a text and knows where each of its values stands; ``fields`` takes typed values out of
objects and collects what is wrong with them, for formats of our own; ``lines`` does so for JSON Lines.
``shape`` checks what other programs print. Imports ``translate.errors``
and ``translate.ir``; all that reads JSON from outside this program goes through here, but for
``nfparity.capture``, which stands alone.
"""

from __future__ import annotations

from translate.jsoninput.document import DEEPEST, JsonDocument, decode, read_json
from translate.jsoninput.fields import (
    MISSING,
    JsonObject,
    Problems,
    json_kind,
    parse_any_address,
    read_object,
)
from translate.jsoninput.lines import json_lines
from translate.jsoninput.shape import FLAG, NUMBER, OBJECT, TEXT, Fields, Items, Leaf, Shape, one_or_more

__all__ = [
    "DEEPEST",
    "FLAG",
    "MISSING",
    "NUMBER",
    "OBJECT",
    "TEXT",
    "Fields",
    "Items",
    "JsonDocument",
    "JsonObject",
    "Leaf",
    "Problems",
    "Shape",
    "decode",
    "json_kind",
    "json_lines",
    "one_or_more",
    "parse_any_address",
    "read_json",
    "read_object",
]
