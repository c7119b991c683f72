"""Saved iptables rules of one family, and their tables that were emptied.

They are kept in a self-contained file: the output of iptables-save, a first line with the family, variant and
kept tables, and a last line with the SHA-256 of everything before. Both lines are comments of iptables.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, Self

from backends.model.variant import Variant
from nfparity.migrate.state.tables import SavedTable, digest_of, split
from translate.dataclass import dataclass
from translate.ir import Family, TableName

__all__ = ["REMOVAL_ORDER", "SavedFamily", "SealError"]

REMOVAL_ORDER: Final = ("raw", "mangle", "nat", "security", "filter")
"""The order in which tables are emptied: tables with filters last. They are restored in reverse order."""

_FIRST: Final = "# nfparity migrate, before: "
_LAST: Final = "# sha256 "


class SealError(ValueError):
    """A damaged file of saved rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedFamily:
    """One family's rules: ``text`` is the output of iptables-save, with or without counters.

    ``left`` are the tables kept in iptables; they are not restored. ``ipsets`` is the output of ``ipset
    save`` if rules use sets; only a plan has it. ``level`` is the optimisation level of their translation.
    """

    family: Family
    variant: Variant
    left: tuple[str, ...]
    text: str
    ipsets: str = ""
    level: int = 2

    @property
    def tables(self) -> Mapping[str, SavedTable]:
        """The tables of the rules, by name."""
        return split(self.text)

    @property
    def removed(self) -> tuple[SavedTable, ...]:
        """The tables with contents, in the order in which they are emptied."""
        tables = self.tables
        order = (*REMOVAL_ORDER, *(n for n in tables if n not in REMOVAL_ORDER))
        return tuple(
            tables[n] for n in order if n in tables and n not in self.left and not tables[n].is_empty
        )

    @property
    def digest(self) -> str:
        """The SHA-256 of the rules to restore, with family and variant but without counters."""
        what = [self.family.value, self.variant.value, sorted(self.left), digest_of(self.tables)]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def file(self) -> bytes:
        """Return the contents of the file."""
        head = {
            "family": self.family.value,
            "stack": self.variant.value,
            "left": list(self.left),
            "level": self.level,
        }
        data = f"{_FIRST}{json.dumps(head)}\n{self.text}".encode(errors="surrogateescape")
        return data + f"{_LAST}{hashlib.sha256(data).hexdigest()}\n".encode()

    @classmethod
    def from_file(cls, data: bytes) -> Self:
        """Return the rules in a result of :meth:`file`. Raises SealError for anything else."""
        rest, marker, seal = data.rpartition(_LAST.encode())
        if not marker or seal != f"{hashlib.sha256(rest).hexdigest()}\n".encode():
            raise SealError("it was changed after it was written")
        first, _, text = rest.decode(errors="surrogateescape").partition("\n")
        try:
            return cls.from_data({**json.loads(first.removeprefix(_FIRST)), "rules": text})
        except (ValueError, TypeError, KeyError, RecursionError) as e:
            raise SealError(f"its first line is invalid: {e}") from e

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Return the rules of a family in a plan. Raises ValueError, KeyError or TypeError."""
        left, text = data["left"], data["rules"]
        if not isinstance(text, str) or not isinstance(left, list):
            raise TypeError("its rules are not text, or its kept tables are not a list")
        made = cls(
            family=Family(data["family"]),
            variant=Variant(data["stack"]),
            left=tuple(TableName(name).value for name in left),
            text=text,
            ipsets=str(data.get("ipsets", "")),
            level=int(data.get("level", 2)),
        )
        for name in made.tables:
            TableName(name)
        return made
