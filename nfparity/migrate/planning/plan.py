"""Plan of a migration as a file: made once, reviewed by people, and applied later.

A plan contains rules, not commands: apply translates the rules again, and the result must have the digest of
the tested text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Self

from backends.model.variant import Variant
from nfparity.migrate.planning.planshape import FORM, PLAN
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable, digest_of
from nfparity.watch.table_state import TableState
from translate.dataclass import dataclass, field
from translate.errors import Diagnostic, ParseError
from translate.ir import Family
from translate.jsoninput import read_json

__all__ = ["FamilyPlan", "MigrationPlan", "families_in"]

_NOT_A_PLAN: Final = "not a plan of nfparity migrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyPlan:
    """One family's part.

    ``rules`` is the output of iptables-save, and ``ipsets`` that of ``ipset save`` for the sets of the rules.
    ``translation`` is the SHA-256 of their nft text at optimisation ``level``; ``table_state`` is the
    expected state of the loaded table. ``left`` are the tables kept in iptables.
    """

    family: Family
    variant: Variant
    rules: str
    ipsets: str
    level: int
    translation: str
    table_state: TableState
    left: tuple[str, ...] = ()

    @property
    def saved(self) -> SavedFamily:
        """The rules of the plan for a restore, with the counters in the plan."""
        return SavedFamily(
            family=self.family,
            variant=self.variant,
            left=self.left,
            text=self.rules,
            ipsets=self.ipsets,
            level=self.level,
        )

    @property
    def tables(self) -> Mapping[str, SavedTable]:
        """The tables of the rules, by name."""
        return self.saved.tables

    @property
    def digest(self) -> str:
        """The digest that the live rules must have when the plan is applied."""
        return digest_of(self.tables)

    @property
    def removed(self) -> tuple[SavedTable, ...]:
        """The tables with contents, in the order in which they are emptied."""
        return self.saved.removed

    def data(self) -> dict[str, Any]:
        """Return the family's plan for JSON."""
        return {
            "family": self.family.value,
            "stack": self.variant.value,
            "left": list(self.left),
            "digest": self.digest,
            "rules": self.rules,
            "ipsets": self.ipsets,
            "level": self.level,
            "translation": self.translation,
            "meaning": self.table_state.data(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the object from the result of :meth:`data`. ValueError if rules and digest do not agree.

        The caller must have checked the shape of ``data`` (:meth:`MigrationPlan.from_text`).
        """
        saved = SavedFamily.from_data(data)
        made = cls(
            family=saved.family,
            variant=saved.variant,
            left=saved.left,
            rules=saved.text,
            ipsets=data["ipsets"],
            level=data["level"],
            translation=data["translation"],
            table_state=TableState.from_data(data["meaning"]),
        )
        if made.digest != data["digest"]:
            raise ValueError("the rules in it are not those of its digest")
        return made


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationPlan:
    """The whole plan. ``node`` is the node as JSON; ``trial`` are the results of the packets, by family."""

    families: tuple[FamilyPlan, ...]
    node: str
    seed: int
    trial: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """The time that sending all packets took, in seconds."""
        return float(sum(trial["seconds"] for trial in self.trial.values() if trial))

    @property
    def digest(self) -> str:
        """The digest that identifies the plan.

        It does not depend on the time of reading, the counters of policies and the duration of the trial. The
        rules of each family enter by their own digest.
        """
        families = [{k: v for k, v in family.data().items() if k != "rules"} for family in self.families]
        trial = {
            family: {name: value for name, value in (result or {}).items() if name != "seconds"}
            for family, result in self.trial.items()
        }
        return _digest_of({**self._data(), "families": families, "trial": trial})

    def text(self) -> str:
        """Return the plan as the text of a file."""
        data = self._data()
        return json.dumps({**data, "digest": _digest_of(data)}, indent=1) + "\n"

    def _data(self) -> dict[str, Any]:
        return {
            "nfparity-migration": FORM,
            "families": [family.data() for family in self.families],
            "node": self.node,
            "seed": self.seed,
            "trial": dict(self.trial),
        }

    @classmethod
    def from_text(cls, text: str, *, name: str) -> Self:
        """Read a plan file.

        Raises ParseError with the position for an invalid or edited plan.
        """
        try:
            document = read_json(text, name=name, bytes_as_text=True)
        except ParseError as e:
            diagnostics = (
                Diagnostic(fault.origin, f"{_NOT_A_PLAN}: {fault.message}") for fault in e.diagnostics
            )
            raise ParseError(tuple(diagnostics)) from None
        data = document.value
        for path, fault in PLAN.faults(data):
            raise document.error(path, f"{_NOT_A_PLAN}: {fault}")
        families: list[FamilyPlan] = []
        for index, item in enumerate(data["families"]):
            try:
                made = FamilyPlan.from_data(item)
            except ValueError as e:
                raise document.error(("families", index), f"{_NOT_A_PLAN}: {e}") from e
            if any(made.family is other.family for other in families):
                raise document.error(("families", index), f"{_NOT_A_PLAN}: it contains a family twice")
            families.append(made)
        if not families:
            raise document.error(("families",), f"{_NOT_A_PLAN}: it contains no rules to replace")
        if data["digest"] != _digest_of({key: value for key, value in data.items() if key != "digest"}):
            raise document.error(("digest",), f"{_NOT_A_PLAN}: it was changed after it was made")
        return cls(families=tuple(families), node=data["node"], seed=data["seed"], trial=data["trial"])


def families_in(text: str) -> tuple[SavedFamily, ...]:
    """Return the saved rules in a plan of any format version. Raises ValueError if it cannot be read."""
    try:
        data = json.loads(text)
        families = []
        for item in data["families"]:
            saved = SavedFamily.from_data(item)
            if digest_of(saved.tables) != item["digest"]:
                raise ValueError("the rules in it are not those of its digest")
            families.append(saved)
        return tuple(families)
    except (KeyError, TypeError, AttributeError, RecursionError) as e:
        raise ValueError(f"it is not a plan: {type(e).__name__}: {e}") from e


def _digest_of(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
