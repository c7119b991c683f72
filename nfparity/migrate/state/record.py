"""Record of a migration's progress, on disk."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Self

from backends.model.variant import Variant
from nfparity.migrate.state.place import MigrationPlace
from nfparity.persistent_state.recordfile import read_record, write_record
from translate.dataclass import asdict, dataclass, field, replace
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["Phase", "Record", "Saved"]


class Phase(Enum):
    """The phase of a migration; in ``APPLYING`` or ``ROLLING_BACK`` without a process, it was interrupted."""

    APPLYING = "applying"
    APPLIED = "applied"
    """Only the new rules are loaded; they are rolled back unless confirmed in time."""
    CONFIRMED = "confirmed"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True)
class Saved:
    """The identity of one family's rules to restore (``SavedFamily``)."""

    variant: Variant
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The progress of a migration. ``machine``, ``boot`` and ``namespace`` are those at its beginning.

    ``identity`` distinguishes migrations in the same place; ``deadline`` is in seconds of ``CLOCK_BOOTTIME``;
    ``saved`` identifies, by family, the rules to restore.
    """

    phase: Phase
    identity: str
    boot: str
    namespace: str
    plan: str
    since: str
    deadline: float
    machine: str = ""
    saved: Mapping[Family, Saved] = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    """Files with rules that other programs had written into emptied tables, and that a rollback removed."""

    def at(self, phase: Phase, **changes: Any) -> Self:
        """Return the record in another phase."""
        return replace(self, phase=phase, **changes)

    def write(self, path: Path) -> None:
        """Write the record to disk. Raises MachineError; the previous record is then intact."""
        saved = {family.value: [s.variant.value, s.digest] for family, s in self.saved.items()}
        write_record(path, {**asdict(self), "phase": self.phase.value, "saved": saved})

    def is_of(self, place: MigrationPlace) -> bool:
        """Return whether the record belongs to the place's namespace, possibly before a reboot."""
        if self.machine and place.machine and self.machine != place.machine:
            return False
        same = self.boot == place.boot and self.namespace == place.namespace
        return same or (self.boot != place.boot and place.lasting)

    def is_forgotten(self, place: MigrationPlace) -> bool:
        """Return whether the applied table is gone because of a reboot."""
        return self.boot != place.boot

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return the record on disk, or None. Raises MachineError for an invalid record."""
        record = read_record(path)
        if record is None:
            return None
        try:
            saved = record.get("saved", {}).items()
            made = cls(
                **{
                    **record,
                    "phase": Phase(record["phase"]),
                    "removed": tuple(record["removed"]),
                    "deadline": float(record["deadline"]),
                    "saved": {Family(name): Saved(Variant(pair[0]), str(pair[1])) for name, pair in saved},
                }
            )
            texts = (made.identity, made.boot, made.namespace, made.plan, made.since, made.machine)
            if not all(isinstance(text, str) for text in (*texts, *made.removed)):
                raise TypeError("a value is not text")
            return made
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as e:
            raise MachineError(f"{path} is not a record of a migration: {e}") from e
