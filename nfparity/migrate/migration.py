"""The order of a migration's steps: every packet passes a complete ruleset at every moment.

*Apply.* The old rules are saved on disk, and the dead-man timer is started. The translation is loaded over
the old rules, in one transaction per family. From then on it is complete, and the old rules do not change its
decisions: at the NAT hooks the first ruleset binds a connection and the other one does not run; at other
hooks both have the same effect. Then the old tables are emptied, each in one step, tables with filters last.
Existing connections keep their bindings, which are in conntrack.

*Roll back.* In reverse order: the old tables are restored while the translation is loaded, and then it is
removed.

If a process is killed, the record stays in an unfinished phase. The dead-man timer notices it at once, or
otherwise the next command, and rolls back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from harness.files.userfiles import read_text
from nfparity.migrate import bootunit
from nfparity.migrate.bootload import Loaded, is_loaded, load_confirmed, store_texts
from nfparity.migrate.clients import CarriedOver, ClientsForth
from nfparity.migrate.deadman import DeadMan, now
from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.translation import translation_of
from nfparity.migrate.recovery import survey
from nfparity.migrate.rollback import RolledBack, roll_back
from nfparity.migrate.state import owned
from nfparity.migrate.state.journal import Hook, Journal
from nfparity.migrate.state.owned import Mark
from nfparity.migrate.state.place import MigrationPlace, here, tables_locked
from nfparity.migrate.state.record import Phase, Record, Saved
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable, digest_of, save
from nfparity.migrate.steps import check_loaded, empty_table, first_difference, written_again
from nfparity.persistent_state.disk import prepare_folder, remove, write_durably
from nfparity.persistent_state.reservedlog import ReservedLog
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError, NfparityError
from translate.ir import Family, TableName
from translate.nft import NftList, NftOutput

__all__ = ["Migration", "RolledBack", "Settled"]

_AGAIN: Final = "nfparity migrate rollback tries again"
_LOG_ROOM: Final = 4096
_TIMER_PATIENCE: Final = 60.0
"""Seconds that the timer waits for a running command before it rolls back anyway."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The state of a migration, after an interrupted action has been undone."""

    record: Record | None
    undone: RolledBack | None = None


@dataclass(frozen=True, slots=True)
class _Begun:
    """A recorded migration with its saved rules, its translation and its clients, in memory."""

    record: Record
    saved: tuple[SavedFamily, ...]
    outputs: Mapping[Family, NftOutput]
    clients: Mapping[Family, ClientsForth]

    @property
    def lists(self) -> Mapping[Family, Sequence[NftList]]:
        """The lists of ``-m recent`` of the translation."""
        return {family: output.structure.lists for family, output in self.outputs.items()}


class Migration:
    """The migration of the current network namespace. ``hook`` is called between steps.

    Methods raise MachineError with the message of the system.
    """

    def __init__(self, place: MigrationPlace | None = None, hook: Hook = lambda point: None) -> None:
        self.place = place or here()
        self._journal = Journal(ReservedLog(self.place.journal), hook)
        self._timer_log = ReservedLog(self.place.timer_log)
        self.carried: tuple[CarriedOver, ...] = ()
        """The clients that ``apply`` has carried over, by family."""

    def apply(self, plan: MigrationPlan, within: float) -> Record:
        """Apply the plan, which must be confirmed ``within`` seconds.

        Raises InputError, without any change, if the rules are not those of the plan, or another migration is
        applied; MachineError if there is no space for the files of a rollback. Later errors are raised after
        a rollback; InputError if another program has changed rules in the meantime.
        """
        place = self.place
        prepare_folder(place.folder)
        with place.locked():
            settled = self._settle().record
            if settled is not None and settled.phase is not Phase.ROLLED_BACK:
                raise InputError(
                    f"a plan is already {settled.phase.value} here; run nfparity migrate rollback first"
                )
            begun = self._begin(plan, within)
            record = begun.record
            # Start the timer before the first change.
            with DeadMan(
                record.deadline, partial(self._is_over, record), partial(self._fire, begun)
            ) as guard:
                record.write(place.record)
                try:
                    self._switch(plan, begun)
                    applied = record.at(Phase.APPLIED)
                    self._journal.step("applied", partial(applied.write, place.record))
                    guard.applied()
                except NfparityError as e:
                    raise self._undone(begun, e) from e
                except BaseException:
                    self._undo(begun)
                    raise
            self.carried = tuple(clients.carried for clients in begun.clients.values())
            return applied

    def settle(self) -> Settled:
        """Undo an interrupted or unconfirmed migration; return the state."""
        with self.place.locked(needed=False):
            return self._settle()

    def confirm(self) -> Record:
        """Stop the timer. Raises InputError if there is nothing to confirm, or if it is too late."""
        with self.place.locked():
            settled = self._settle()
            record = settled.record
            if record is None or record.phase not in (Phase.APPLIED, Phase.CONFIRMED):
                late = (
                    ("too late: the plan has been rolled back")
                    if settled.undone
                    else "no plan is applied here"
                )
                raise InputError(late)
            for family in record.saved:
                if not owned.is_there(family):
                    table = f"{family.value} nfparity"
                    raise InputError(f"the applied rules are gone: nftables has no table {table}")
            confirmed = record.at(Phase.CONFIRMED)
            confirmed.write(self.place.record)
            return confirmed

    def load_at_boot(self) -> Path:
        """Enable the unit that loads the confirmed translation at boot; return its path.

        Raises InputError if nothing is confirmed, or outside of the host's network namespace.
        """
        place = self.place
        if place.units is None:
            raise InputError("a unit loads rules at boot only into the host's network namespace")
        with place.locked():
            record = self._settle().record
            if record is None or record.phase is not Phase.CONFIRMED:
                raise InputError("no plan is confirmed here; verify --confirm --at-boot does both")
            store_texts(place, self.plan())
            return bootunit.enable(place.units, place.folder)

    def load(self) -> Loaded:
        """Load the confirmed translation after a reboot.

        Raises MachineError or InputError, with nothing loaded, for everything that :func:`load_confirmed`
        refuses.
        """
        with self.place.locked(needed=False):
            return load_confirmed(self.place)

    def rollback(self) -> RolledBack | None:
        """Restore the state before apply; return None if nothing is applied.

        If the record or the saved rules are damaged, restores what the intact files allow. Raises
        MachineError with the commands that restore the rest by hand.
        """
        with self.place.locked(needed=False):
            return self._roll_back()

    def plan(self) -> MigrationPlan:
        """Return the plan that was applied last. Raises InputError if there is none."""
        return MigrationPlan.from_text(read_text(self.place.plan), name=str(self.place.plan))

    def insist_on_record(self, record: Record | None) -> None:
        """Raise MachineError if nfparity's table is loaded but not recorded as applied."""
        if record is not None and record.phase is not Phase.ROLLED_BACK:
            return
        for family in Family:
            if owned.is_there(family):
                raise MachineError(
                    f"an nftables table {family.value} nfparity is loaded, but {self.place.record} does not "
                    "record an applied plan; nfparity migrate rollback restores what can be restored"
                )

    def is_forgotten(self, record: Record) -> bool:
        """Return whether the applied table is gone because of a reboot."""
        return record.is_forgotten(self.place) and not is_loaded(record)

    def _begin(self, plan: MigrationPlan, within: float) -> _Begun:
        """Save everything needed for a rollback, and reserve the space of later writes."""
        place = self.place
        outputs = {family.family: translation_of(family) for family in plan.families}
        saved = tuple(replace(f.saved, text=save(f.variant, f.family, counters=True)) for f in plan.families)
        for family, live in zip(plan.families, saved, strict=True):
            _insist_as_planned(family, live.tables)
        since = datetime.now(UTC).isoformat(timespec="milliseconds")
        digest = plan.digest
        record = Record(
            phase=Phase.APPLYING,
            identity=f"{since} {digest}",
            machine=place.machine,
            boot=place.boot,
            namespace=place.namespace,
            plan=digest,
            since=since,
            deadline=now() + within,
            saved={live.family: Saved(live.variant, live.digest) for live in saved},
        )
        try:
            self._forget_earlier()
            for live in saved:
                write_durably(place.rules(live.family), live.file())
            write_durably(place.plan, plan.text().encode())
            self._journal.begin_anew()
            self._timer_log.begin(_LOG_ROOM)
            # Write a record in a finished phase before the first change, to reserve its space.
            record.at(Phase.ROLLED_BACK).write(place.record)
        except (MachineError, OSError) as e:
            with suppress(OSError):
                self._forget_earlier()
            raise MachineError(f"{e}; nothing is changed") from e
        clients = {f.family: ClientsForth(f.family, outputs[f.family].structure.lists) for f in plan.families}
        return _Begun(record, saved, outputs, clients)

    def _forget_earlier(self) -> None:
        """Remove the files of an earlier, finished migration to free space. Raises OSError."""
        place = self.place
        paths = [place.plan, place.journal, place.timer_log]
        for family in Family:
            paths += [
                place.rules(family),
                place.translation(family),
                *(place.others_rules(family, table) for table in TableName),
            ]
        for path in paths:
            remove(path)

    def _switch(self, plan: MigrationPlan, begun: _Begun) -> None:
        step = self._journal.step
        for family, saved in zip(plan.families, begun.saved, strict=True):
            step(f"load {family.family.value}", partial(self._load, family.family, saved, begun))
            step(f"check {family.family.value}", partial(check_loaded, family))
        with tables_locked():
            for family in plan.families:
                for table in family.removed:
                    step(f"empty {family.family.value} {table.name}", partial(empty_table, family, table))
            for family in plan.families:
                step(f"look {family.family.value}", partial(_insist_replaced, family))

    def _load(self, family: Family, saved: SavedFamily, begun: _Begun) -> None:
        clients = begun.clients[family]
        text = begun.outputs[family].text + clients.elements()
        owned.load_marked(family, text, Mark.of(saved, self.place.folder))
        clients.catch_up()

    def _settle(self) -> Settled:
        record = self._record()
        if record is None:
            return Settled(None)
        cut_short = record.phase in (Phase.APPLYING, Phase.ROLLING_BACK)
        late = record.phase is Phase.APPLIED and not self.is_forgotten(record) and now() >= record.deadline
        if not cut_short and not late:
            return Settled(record)
        undone = self._roll_back()
        removed = () if undone is None else undone.files
        return Settled(record.at(Phase.ROLLED_BACK, removed=removed), undone)

    def _record(self) -> Record | None:
        """Return the record of this namespace; not that of an earlier namespace with the same inode."""
        try:
            record = Record.read(self.place.record)
        except MachineError as e:
            raise MachineError(f"{e}; nfparity migrate rollback restores what can be restored") from e
        if record is None or record.is_of(self.place):
            return record
        if self.place.lasting:
            raise InputError(f"{self.place.folder} belongs to another network namespace or machine")
        return None

    def _roll_back(self) -> RolledBack | None:
        remains = survey(self.place)
        if remains.is_nothing:
            if remains.foreign:
                self._record()
            else:
                bootunit.disable(self.place.units)
            return None
        record = remains.record
        if record is None or record.phase is Phase.ROLLED_BACK:
            record = _recovered(self.place, remains.families)
        if not remains.families and not remains.lost:
            raise MachineError(remains.nothing_left())
        undone = None
        try:
            if remains.families:
                complete = not remains.lost
                undone = roll_back(self.place, self._journal, record, remains.families, complete=complete)
        except MachineError as e:
            raise MachineError("\n".join((str(e), *remains.by_hand()))) from e
        if remains.lost:
            raise MachineError("\n".join(remains.by_hand()))
        return undone

    def _undo(self, begun: _Begun) -> RolledBack:
        return roll_back(self.place, self._journal, begun.record, begun.saved, lists=begun.lists)

    def _undone(self, begun: _Begun, error: NfparityError) -> NfparityError:
        """Roll back, and return the error with the result of the rollback."""
        error_class = InputError if isinstance(error, InputError) else MachineError
        try:
            undone = self._undo(begun)
        except NfparityError as e:
            return error_class(f"{error}; the rollback failed, too: {e}; {_AGAIN}")
        return error_class(
            "\n".join((f"{error}; everything is restored as it was before", *undone.reservations()))
        )

    def _is_over(self, record: Record) -> bool:
        """Return whether the migration was confirmed or rolled back, according to the record."""
        try:
            current = Record.read(self.place.record)
        except Exception:
            return False
        if current is None:
            return False
        return current.identity != record.identity or current.phase in (Phase.CONFIRMED, Phase.ROLLED_BACK)

    def _fire(self, begun: _Begun, why: str) -> bool:
        """Roll back for the timer; return whether the rollback is finished. Raises nothing."""
        try:
            with self.place.locked(needed=False, patience=_TIMER_PATIENCE):
                if not self._is_over(begun.record):
                    self._say(f"{why}: rolling back")
                    done = self._undo(begun)
                    self._say("\n".join(("rolled back", *done.reservations())))
            return True
        except Exception as e:
            self._say(f"could not roll back: {e}; trying again")
            return False

    def _say(self, text: str) -> None:
        with suppress(Exception):
            self._timer_log.add(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text}")


def _recovered(place: MigrationPlace, families: tuple[SavedFamily, ...]) -> Record:
    """Return a replacement for a record that is damaged or missing."""
    since = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Record(
        phase=Phase.ROLLING_BACK,
        identity=f"{since} recovered",
        machine=place.machine,
        boot=place.boot,
        namespace=place.namespace,
        plan="",
        since=since,
        deadline=0.0,
        saved={family.family: Saved(family.variant, family.digest) for family in families},
    )


def _insist_as_planned(plan: FamilyPlan, live: Mapping[str, SavedTable]) -> None:
    family, planned = plan.family.value, plan.tables
    if owned.is_there(plan.family):
        raise InputError(f"an nftables table {family} nfparity already exists; is it needed?")
    if digest_of(live) == plan.digest:
        return
    changed = f"the {family} rules have changed since the plan"
    for name in planned:
        was, is_ = planned[name], live.get(name)
        if is_ is not None and was.table_state != is_.table_state:
            raise InputError(f"{changed}: table {name}: {first_difference(was, is_)}; make another plan")
    names = ", ".join(sorted(set(planned) ^ set(live)))
    raise InputError(f"{changed}: table {names} is new or missing; make another plan")


def _insist_replaced(plan: FamilyPlan) -> None:
    """Raise InputError if old tables contain rules again, MachineError if nfparity's table is gone."""
    check_loaded(plan)
    for name in written_again(plan):
        raise InputError(f"another program has written {plan.family.value} rules into table {name}")
