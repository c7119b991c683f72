"""What a migration is to do, as a file: made in one moment, looked at by people, and applied in another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from harness.migrate.meaning import Meaning
from harness.migrate.tables import SavedTable, digest_of, split
from harness.snapshot.stack import Stack
from translate.errors import Diagnostic, ParseError
from translate.ir import Family
from translate.jsoninput import TEXT, Fields, Items, Leaf, read_json

__all__ = ["REMOVAL_ORDER", "FamilyPlan", "MigrationPlan"]

_FORM: Final = 1

REMOVAL_ORDER: Final = ("raw", "mangle", "nat", "security", "filter")
"""The tables that only forbid go last, and come back first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPlan:
    """One family's part.

    ``rules`` is what iptables-save printed, ``ipsets`` what the sets held that they ask; ``load`` the nft
    text that is loaded, at optimisation ``level``, and ``meaning`` what a listing of the table says then.
    ``left`` are the tables that stay in iptables.
    """

    family: Family
    stack: Stack
    rules: str
    ipsets: str
    level: int
    load: str
    meaning: Meaning
    left: tuple[str, ...] = ()

    @property
    def tables(self) -> Mapping[str, SavedTable]:
        """The tables of the rules, by name."""
        return split(self.rules)

    @property
    def digest(self) -> str:
        """What the live rules have to have when the plan is applied."""
        return digest_of(self.tables)

    @property
    def removed(self) -> tuple[SavedTable, ...]:
        """The tables that hold something, in the order in which they are emptied."""
        found = self.tables
        order = (*REMOVAL_ORDER, *(n for n in found if n not in REMOVAL_ORDER))
        return tuple(found[n] for n in order if n in found and n not in self.left and not found[n].is_empty)

    def data(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "family": self.family.value,
            "stack": self.stack.value,
            "left": list(self.left),
            "digest": self.digest,
            "rules": self.rules,
            "ipsets": self.ipsets,
            "level": self.level,
            "load": self.load,
            "meaning": self.meaning.data(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return what :meth:`data` was made from. ValueError when the rules are not those of the digest.

        ``data`` must have the shape that :meth:`MigrationPlan.from_text` has checked.
        """
        made = cls(
            family=Family(data["family"]),
            stack=Stack(data["stack"]),
            left=tuple(data["left"]),
            rules=data["rules"],
            ipsets=data["ipsets"],
            level=data["level"],
            load=data["load"],
            meaning=Meaning.from_data(data["meaning"]),
        )
        if made.digest != data["digest"]:
            raise ValueError("the rules in it are not those of its digest")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The whole plan. ``node`` is the node's facts as JSON; ``trial`` what packets have shown."""

    families: tuple[FamilyPlan, ...]
    node: str
    seed: int
    trial: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long its packets took, all in all."""
        return float(sum(one["seconds"] for one in self.trial.values() if one))

    @property
    def digest(self) -> str:
        """The SHA-256 of all of it."""
        return hashlib.sha256(self.text().encode(errors="surrogateescape")).hexdigest()

    def text(self) -> str:
        """Return it as a file."""
        data = {
            "nfparity-migration": _FORM,
            "families": [one.data() for one in self.families],
            "node": self.node,
            "seed": self.seed,
            "trial": dict(self.trial),
        }
        return json.dumps(data, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str, *, name: str) -> Self:
        """Read a plan file. Raises ParseError, with the place of what is wrong, for anything else."""
        try:
            document = read_json(text, name=name, bytes_as_text=True)
        except ParseError as e:
            said = (Diagnostic(one.origin, f"{_NOT_A_PLAN}: {one.message}") for one in e.diagnostics)
            raise ParseError(tuple(said)) from None
        data = document.value
        for path, fault in _PLAN.faults(data):
            raise document.error(path, f"{_NOT_A_PLAN}: {fault}")
        families = []
        for index, one in enumerate(data["families"]):
            try:
                families.append(FamilyPlan.from_data(one))
            except ValueError as e:
                raise document.error(("families", index), f"{_NOT_A_PLAN}: {e}") from e
        return cls(families=tuple(families), node=data["node"], seed=data["seed"], trial=data["trial"])


_NOT_A_PLAN: Final = "not a plan of nfparity migrate"


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_text_map(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


_MEANING: Final = Fields(
    required={
        "flags": Leaf(_is_texts, "a list of strings"),
        "chains": Leaf(
            lambda value: (
                isinstance(value, dict) and all(_is_pair(one) and _is_texts(one[1]) for one in value.values())
            ),
            "an object of chains",
        ),
        "collections": Leaf(
            lambda value: (
                isinstance(value, dict)
                and all(_is_pair(one) and _is_text_map(one[1]) for one in value.values())
            ),
            "an object of sets",
        ),
        "others": Leaf(_is_text_map, "an object of strings"),
    }
)
_FAMILY: Final = Fields(
    required={
        "family": Leaf(lambda value: value in tuple(Family), "ip or ip6"),
        "stack": Leaf(lambda value: value in tuple(Stack), "legacy or nft"),
        "left": Leaf(_is_texts, "a list of tables"),
        "digest": TEXT,
        "rules": TEXT,
        "ipsets": TEXT,
        "level": Leaf(lambda value: value in (0, 1, 2), "0, 1 or 2"),
        "load": TEXT,
        "meaning": _MEANING,
    }
)
_SECONDS: Final = Leaf(
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1e9,
    "a number of seconds",
)
_PLAN: Final = Fields(
    required={
        "nfparity-migration": Leaf(lambda value: value == _FORM and value is not True, f"the form {_FORM}"),
        "families": Items(_FAMILY),
        "node": TEXT,
        "seed": Leaf(lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
        "trial": Fields(optional={one.value: Fields(required={"seconds": _SECONDS}) for one in Family}),
    }
)
