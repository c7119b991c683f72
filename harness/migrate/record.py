"""How far a migration is, on disk."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Self

from harness.migrate.place import Place, write_durably
from translate.errors import MachineError

__all__ = ["Phase", "Record"]


class Phase(Enum):
    """Whoever finds ``APPLYING`` or ``ROLLING_BACK``, with nobody at work, finds what was cut short."""

    APPLYING = "applying"
    APPLIED = "applied"
    """The new rules alone are in force, and go again unless that is confirmed in time."""
    CONFIRMED = "confirmed"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """``boot`` and ``namespace`` are those of the place when it was begun.

    ``identity`` tells one migration from the next in the same place; ``deadline`` is on the clock that
    counts from boot (``CLOCK_BOOTTIME``), in seconds.
    """

    phase: Phase
    identity: str
    boot: str
    namespace: str
    plan: str
    since: str
    deadline: float
    removed: tuple[str, ...] = ()
    """What somebody else had put into emptied tables and a rollback has taken out: files that hold it."""

    def at(self, phase: Phase, **changes: Any) -> Self:
        """Return the record at another phase."""
        return replace(self, phase=phase, **changes)

    def write(self, path: Path) -> None:
        """Put it on disk. Raises MachineError."""
        write_durably(path, json.dumps({**asdict(self), "phase": self.phase.value}, indent=1) + "\n")

    def is_of(self, place: Place) -> bool:
        """Whether this is about the place's namespace, be it before a reboot."""
        same = self.boot == place.boot and self.namespace == place.namespace
        return same or (self.boot != place.boot and place.lasting)

    def is_forgotten(self, place: Place) -> bool:
        """Whether the kernel has forgotten what was applied: it has been booted since."""
        return self.boot != place.boot

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Return what is on disk, None if nothing is. Raises MachineError for what is not a record."""
        try:
            data = json.loads(path.read_text())
            data["phase"] = Phase(data["phase"])
            data["removed"] = tuple(data["removed"])
            return cls(**data)
        except FileNotFoundError:
            return None
        except OSError as e:
            raise MachineError(f"cannot read {path}: {e.strerror}") from e
        except (ValueError, TypeError, KeyError) as e:
            raise MachineError(f"{path} is not a record of a migration: {e}") from e
