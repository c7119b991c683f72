"""Input in JSON: every fault is reported with its file, line and column.

``document`` reads a text and the place of each value. ``fields`` takes typed values out of objects of
nfparity's own formats and collects their faults; ``lines`` does so for JSON Lines. ``shape`` checks the
output of other programs. Imports ``translate.errors`` and ``translate.ir``. Users'
files in JSON are read by this package alone. ``nfparity.capture`` and ``nfparity.kubectl`` must run on Python
3.8 and cannot import it.
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
