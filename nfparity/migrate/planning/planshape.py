"""The shape of a plan file; a violation is an error with its position."""

from __future__ import annotations

from typing import Final

from backends.model.variant import Variant
from translate.ir import Family, TableName
from translate.jsoninput import TEXT, Fields, Items, Leaf

__all__ = ["FORM", "PLAN"]

FORM: Final = 2


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _is_chains(value: object) -> bool:
    return isinstance(value, dict) and all(_is_pair(item) and _is_texts(item[1]) for item in value.values())


def _is_collections(value: object) -> bool:
    return isinstance(value, dict) and all(_is_pair(v) and _is_text_map(v[1]) for v in value.values())


_MEANING: Final = Fields(
    required={
        "flags": Leaf(_is_texts, "a list of strings"),
        "chains": Leaf(_is_chains, "an object of chains"),
        "collections": Leaf(_is_collections, "an object of sets"),
        "others": Leaf(_is_text_map, "an object of strings"),
    }
)
_FAMILY: Final = Fields(
    required={
        "family": Leaf(lambda value: value in tuple(Family), "ip or ip6"),
        "stack": Leaf(lambda value: value in tuple(Variant), "legacy or nft"),
        "left": Leaf(
            lambda value: isinstance(value, list) and all(item in tuple(TableName) for item in value),
            "a list of tables",
        ),
        "digest": TEXT,
        "rules": TEXT,
        "ipsets": TEXT,
        "level": Leaf(lambda value: _is_whole(value) and value in (0, 1, 2), "0, 1 or 2"),
        "translation": TEXT,
        "meaning": _MEANING,
    }
)
_TRIAL: Final = Fields(required={"seconds": Leaf(_is_seconds, "a number of seconds")})
PLAN: Final = Fields(
    required={
        "nfparity-migration": Leaf(
            lambda value: _is_whole(value) and value == FORM, f"format {FORM}; make another plan"
        ),
        "families": Items(_FAMILY),
        "node": TEXT,
        "seed": Leaf(_is_whole, "a whole number"),
        "trial": Fields(optional={family.value: _TRIAL for family in Family}),
        "digest": TEXT,
    }
)
