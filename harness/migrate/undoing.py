"""Going back: what ``rollback`` does, the dead-man timer, and the next command after a crash.

Everything here may be done again, by whoever, after any part of it. As long as an old table could not be
put back the translation stays, so that something complete is in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from harness.files import read_text
from harness.migrate import owned
from harness.migrate.journal import Journal, read_journal
from harness.migrate.place import Place, tables_locked
from harness.migrate.plan import FamilyPlan, MigrationPlan
from harness.migrate.record import Phase, Record
from harness.migrate.steps import Restored, insist_restored, restore
from harness.migrate.tables import SavedTable, split
from translate.errors import MachineError

__all__ = ["RolledBack", "roll_back"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """What a rollback has come to: by family and table, and the files with what others had put there.

    ``forgotten``: the kernel had forgotten the rules since they were applied, by a reboot for example.
    """

    tables: tuple[tuple[str, str, Restored], ...]
    files: tuple[str, ...]
    forgotten: bool


def roll_back(place: Place, journal: Journal) -> RolledBack:
    """Restore the state from before the record. Only for whoever has locked the place. MachineError."""
    record = Record.read(place.record)
    if record is None:
        raise MachineError(f"there is no record in {place.folder}")
    forgotten = record.is_forgotten(place)
    plan = MigrationPlan.from_text(read_text(place.plan), name=str(place.plan))
    record = record.at(Phase.ROLLING_BACK)
    record.write(place.record)
    lines = frozenset(() if forgotten else read_journal(place.journal))
    found: list[tuple[str, str, Restored]] = []
    with tables_locked():
        for one in reversed(plan.families):
            saved = split(read_text(place.rules(one.family)))
            for table in reversed(one.removed):
                back = _PutBack(place, one, saved[table.name], lines)
                journal.step(f"restore {one.family.value} {table.name}", back)
                found.append((one.family.value, table.name, back.done))
    for one in reversed(plan.families):
        journal.step(f"delete {one.family.value}", partial(owned.delete_table, one.family))
    for one in plan.families:
        ours = {name for family, name, done in found if family == one.family.value and done.exact}
        journal.step(f"compare {one.family.value}", partial(insist_restored, one, ours))
    paths = (place.found(one.family, table.name) for one in plan.families for table in one.removed)
    files = tuple(str(path) for path in paths if path.exists())
    done = record.at(Phase.ROLLED_BACK, removed=files)
    journal.step("rolled back", lambda: done.write(place.record))
    return RolledBack(tables=tuple(found), files=files, forgotten=forgotten)


class _PutBack:
    """Puts one table back; ``done`` says how it went."""

    def __init__(self, place: Place, plan: FamilyPlan, table: SavedTable, lines: frozenset[str]) -> None:
        key = f"{plan.family.value} {table.name}"
        self._place, self._plan, self._table = place, plan, table
        self._emptied = f"done empty {key}" in lines
        self._restored = f"done restore {key}" in lines
        self.done = Restored.EARLIER

    def __call__(self) -> None:
        if not self._restored:  # what others have done to it since is theirs
            self.done = restore(self._place, self._plan, self._table, ours=self._emptied)
