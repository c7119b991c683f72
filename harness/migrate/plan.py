"""What a migration is to do, as a file: made in one moment, looked at by people, and applied in another."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from harness.migrate.meaning import Meaning
from harness.migrate.tables import SavedTable, digest_of, split
from harness.snapshot.stack import Stack
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin

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
        """Return what :meth:`data` was made from. ValueError when the rules are not those of the digest."""
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
        return float(sum(one["seconds"] for one in self.trial.values()))

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
        """Read a plan file. Raises ParseError for anything else."""
        try:
            data = json.loads(text)
            if data["nfparity-migration"] != _FORM:
                raise ValueError(f"a plan of form {data['nfparity-migration']!r}, not {_FORM}")
            made = cls(
                families=tuple(FamilyPlan.from_data(one) for one in data["families"]),
                node=data["node"],
                seed=data["seed"],
                trial=data["trial"],
            )
            if not math.isfinite(made.seconds):
                raise ValueError("its packets took no time that can be told")
            return made
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            said = f"not a plan of nfparity migrate: {type(e).__name__}: {e}"
            raise ParseError((Diagnostic(Origin(name), said),)) from e
