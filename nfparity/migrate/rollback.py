"""Rollback: for the command, the dead-man timer, and the next command after a crash.

Every step may be repeated, by any process, after an interruption at any point. The kernel has priority: a
failed write to disk is only reported, and a table that cannot be restored does not stop the others. If a
table of a family cannot be restored, the family's translation stays, so that one ruleset is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from nfparity.migrate import bootunit
from nfparity.migrate.clients import ClientsBack
from nfparity.migrate.state import owned
from nfparity.migrate.state.journal import Journal, Steps
from nfparity.migrate.state.place import MigrationPlace, tables_locked
from nfparity.migrate.state.record import Phase, Record
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable
from nfparity.migrate.steps import Restored, insist_restored, restore
from nfparity.persistent_state.disk import write_durably
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family
from translate.nft import NftList

__all__ = ["RolledBack", "roll_back"]

_PATIENCE: Final = 30.0
"""Seconds to wait for the lock of iptables before tables are restored without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The result of a rollback for each family and table, and the files with rules of other programs.

    ``texts`` are rules of other programs for which no file could be written. ``forgotten``: the kernel had
    lost the applied rules, for example by a reboot. ``complaints`` are failed reads and writes that did not
    prevent the rollback.
    """

    tables: tuple[tuple[str, str, Restored], ...]
    files: tuple[str, ...]
    texts: tuple[str, ...]
    forgotten: bool
    complaints: tuple[str, ...] = ()

    def reservations(self) -> tuple[str, ...]:
        """Return lines about the saved rules of other programs, and about failures."""
        lines = [f"rules that other programs had written there are kept in {path}" for path in self.files]
        for text in self.texts:
            lines.append("rules that other programs had written there could not be kept in a file:")
            lines += text.rstrip("\n").split("\n")
        return (*lines, *(f"warning: {complaint}" for complaint in self.complaints))


def roll_back(
    place: MigrationPlace,
    journal: Journal,
    record: Record,
    families: tuple[SavedFamily, ...],
    *,
    complete: bool = True,
    lists: Mapping[Family, Sequence[NftList]] | None = None,
) -> RolledBack:
    """Restore the families' rules. The caller must hold the lock of the place.

    ``lists`` are the lists of ``-m recent`` of the loaded translations; without them, the saved rules are
    translated again.

    ``complete`` is False if these are not all replaced families; the record then stays unfinished. Raises
    MachineError with all failures, after everything else has been done.
    """
    return _Rollback(place, journal, record, families, lists or {}).run(complete=complete)


class _Rollback:
    def __init__(
        self,
        place: MigrationPlace,
        journal: Journal,
        record: Record,
        families: tuple[SavedFamily, ...],
        lists: Mapping[Family, Sequence[NftList]],
    ) -> None:
        self._place, self._journal, self._record, self._families = place, journal, record, families
        self._clients = {saved.family: ClientsBack(saved, lists.get(saved.family)) for saved in families}
        self._before = journal.steps()
        self._tables: list[tuple[str, str, Restored]] = []
        self._texts: list[str] = []
        self._failures: list[str] = []
        self._complaints: list[str] = []
        self._failed: set[Family] = set()
        self._any_loaded = False

    def run(self, *, complete: bool) -> RolledBack:
        """Run the rollback."""
        self._journal.turn_back()
        self._record_phase(self._record.at(Phase.ROLLING_BACK))
        with tables_locked(needed=False, patience=_PATIENCE):
            for saved in reversed(self._families):
                loaded = self._is_loaded(saved.family)
                self._any_loaded = self._any_loaded or loaded
                for table in reversed(saved.removed):
                    self._put_back(saved, table, loaded=loaded)
        for saved in reversed(self._families):
            if saved.family not in self._failed:
                self._try(saved.family, f"delete {saved.family.value}", partial(self._delete, saved.family))
        for saved in self._families:
            if saved.family not in self._failed:
                name = saved.family.value
                exact = {table for family, table, done in self._tables if family == name and done.exact}
                self._try(saved.family, f"compare {name}", partial(insist_restored, saved, exact))
        if self._failures:
            raise MachineError("; ".join(self._failures))
        paths = (self._place.others_rules(f.family, t.name) for f in self._families for t in f.removed)
        files = tuple(str(path) for path in paths if os.path.exists(path))
        done = self._record.at(Phase.ROLLED_BACK, removed=files)
        if complete:
            self._journal.step("rolled back", lambda: self._record_phase(done))
            try:
                bootunit.disable(self._place.units)
            except MachineError as e:
                self._complaints.append(str(e))
        for clients in self._clients.values():
            self._complaints += clients.complaints
        if self._journal.complaint is not None:
            self._complaints.append(self._journal.complaint)
        return RolledBack(
            tables=tuple(self._tables),
            files=files,
            texts=tuple(self._texts),
            forgotten=self._record.is_forgotten(self._place) and not self._any_loaded,
            complaints=tuple(dict.fromkeys(self._complaints)),
        )

    def _put_back(self, saved: SavedFamily, table: SavedTable, *, loaded: bool) -> None:
        key = f"{saved.family.value} {table.name}"
        emptied = _was_emptied(key, self._before) if loaded else False

        def action() -> None:
            keep = partial(self._keep, saved.family, table.name)
            done = restore(saved, table, self._clients[saved.family], emptied=emptied, keep=keep)
            self._tables.append((saved.family.value, table.name, done))

        self._try(saved.family, f"restore {key}", action)

    def _delete(self, family: Family) -> None:
        self._clients[family].catch_up()
        owned.delete_table(family)

    def _try(self, family: Family, step: str, action: Callable[[], None]) -> None:
        try:
            self._journal.step(step, action)
        except (MachineError, OSError) as e:
            self._failed.add(family)
            self._failures.append(f"{step}: {e}")

    def _is_loaded(self, family: Family) -> bool:
        try:
            return owned.is_there(family)
        except (MachineError, OSError):
            return True

    def _keep(self, family: Family, table: str, text: str) -> None:
        try:
            write_durably(self._place.others_rules(family, table), text.encode(errors="surrogateescape"))
        except MachineError as e:
            self._complaints.append(str(e))
            self._texts.append(text)

    def _record_phase(self, record: Record) -> None:
        try:
            record.write(self._place.record)
        except MachineError as e:
            self._complaints.append(str(e))


def _was_emptied(key: str, before: Steps) -> bool | None:
    """Return whether a table was emptied and not restored since; None if the journal does not show it."""
    if f"done restore {key}" in before:
        return False
    if f"done empty {key}" in before:
        return True
    if before.whole and f"begin empty {key}" not in before:
        return False
    return None
