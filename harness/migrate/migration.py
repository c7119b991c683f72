"""A migration from its first to its last step, and back. The order, and why no packet falls between:

*Apply.* What is needed to go back is put on disk, and the dead-man timer armed. The translation is loaded
over the old rules, in one transaction per family. From here on it is complete, and with the old rules besides
it decides what it decides alone: at the NAT hooks the one that is asked first binds a connection, and the
other is not asked; elsewhere both say the same. Then the old tables are emptied, each at once, those that
forbid last. Connections that there are keep their bindings, which conntrack has and no rule.

*Roll back.* The other way round: the old tables come back while the translation is in force, then that goes.

A process that is cut short leaves the record in a phase that nobody is at work on. The dead-man timer sees
it at once; should that have been killed too, the next command. Either rolls back.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from harness.files import read_text
from harness.migrate import owned
from harness.migrate.deadman import DeadMan, now
from harness.migrate.journal import Hook, Journal
from harness.migrate.place import Place, here, tables_locked, write_durably
from harness.migrate.plan import FamilyPlan, MigrationPlan
from harness.migrate.record import Phase, Record
from harness.migrate.steps import (
    check_loaded,
    empty_table,
    first_difference,
    written_again,
)
from harness.migrate.tables import SavedTable, digest_of, save, split
from harness.migrate.undoing import RolledBack, roll_back
from translate.errors import InputError, MachineError, NfparityError

__all__ = ["Migration", "RolledBack", "Settled"]


@dataclass(frozen=True, slots=True)
class Settled:
    """How far things are, after what was cut short has been undone."""

    record: Record | None
    undone: RolledBack | None = None


class Migration:
    """The migration of the current network namespace. ``hook`` is told of every point between steps.

    Methods raise MachineError with what the machine said.
    """

    def __init__(self, place: Place | None = None, hook: Hook = lambda point: None) -> None:
        self.place = place or here()
        self._journal = Journal(self.place.journal, hook)

    def apply(self, plan: MigrationPlan, within: float) -> Record:
        """Put the plan in force, to be confirmed ``within`` seconds.

        Raises InputError, and nothing has changed, when the rules are not those of the plan, or another
        migration is in force. What goes wrong later is rolled back, and raised as InputError when somebody
        else has changed rules meanwhile.
        """
        place = self.place
        with place.locked():
            settled = self._settle().record
            if settled is not None and settled.phase is not Phase.ROLLED_BACK:
                raise InputError(
                    f"a plan is {settled.phase.value} here already; nfparity migrate rollback first"
                )
            record = self._write_down(plan, within)
            over, fire = partial(self._is_over, record), partial(self._fire, record)
            # Armed before there is anything to undo.
            with DeadMan(record.deadline, over, fire) as guard:
                record.write(place.record)
                try:
                    self._switch(plan)
                    applied = record.at(Phase.APPLIED)
                    self._journal.step("applied", partial(applied.write, place.record))
                except NfparityError as e:
                    raise self._undone(e) from e
                except BaseException:
                    self._roll_back()
                    raise
                guard.applied()
            return applied

    def settle(self) -> Settled:
        """Undo what was cut short, or not confirmed in time; return how far things are."""
        with self.place.locked():
            return self._settle()

    def confirm(self) -> Record:
        """Stop the timer. Raises InputError when there is nothing to confirm, or it is too late."""
        with self.place.locked():
            settled = self._settle()
            record = settled.record
            if record is None or record.phase not in (Phase.APPLIED, Phase.CONFIRMED):
                late = "too late: it has been rolled back" if settled.undone else "no plan is applied here"
                raise InputError(late)
            confirmed = record.at(Phase.CONFIRMED)
            confirmed.write(self.place.record)
            return confirmed

    def rollback(self) -> RolledBack | None:
        """Restore the state from before; None when nothing was applied, or it is restored already."""
        with self.place.locked():
            record = self._record()
            if record is None or record.phase is Phase.ROLLED_BACK:
                return None
            return self._roll_back()

    def plan(self) -> MigrationPlan:
        """Return the plan that was applied last. Raises InputError when there was none."""
        return MigrationPlan.from_text(read_text(self.place.plan), name=str(self.place.plan))

    def is_forgotten(self, record: Record) -> bool:
        """Whether the kernel has forgotten what was applied: it has been booted since."""
        return record.is_forgotten(self.place)

    def _write_down(self, plan: MigrationPlan, within: float) -> Record:
        place = self.place
        saved = {one.family: save(one.stack, one.family, counters=True) for one in plan.families}
        for one in plan.families:
            _insist_as_planned(one, split(saved[one.family]))
        for one in plan.families:
            write_durably(place.rules(one.family), saved[one.family])
        text = plan.text()
        write_durably(place.plan, text)
        for one in plan.families:
            for table in one.removed:
                place.found(one.family, table.name).unlink(missing_ok=True)
        self._journal.begin_anew()
        since = datetime.now(UTC).isoformat(timespec="milliseconds")
        return Record(
            phase=Phase.APPLYING,
            identity=f"{since} {plan.digest}",
            boot=place.boot,
            namespace=place.namespace,
            plan=plan.digest,
            since=since,
            deadline=now() + within,
        )

    def _switch(self, plan: MigrationPlan) -> None:
        step = self._journal.step
        for one in plan.families:
            step(f"load {one.family.value}", partial(owned.load, one.load))
            step(f"check {one.family.value}", partial(check_loaded, one))
        with tables_locked():
            for one in plan.families:
                for table in one.removed:
                    step(f"empty {one.family.value} {table.name}", partial(empty_table, one, table))
            for one in plan.families:
                step(f"look {one.family.value}", partial(_insist_replaced, one))

    def _settle(self) -> Settled:
        record = self._record()
        if record is None:
            return Settled(None)
        cut_short = record.phase in (Phase.APPLYING, Phase.ROLLING_BACK)
        late = record.phase is Phase.APPLIED and not self.is_forgotten(record) and now() >= record.deadline
        if not cut_short and not late:
            return Settled(record)
        undone = self._roll_back()
        return Settled(Record.read(self.place.record), undone)

    def _undone(self, error: NfparityError) -> NfparityError:
        """Roll back, and return the error with what came of that."""
        kind = InputError if isinstance(error, InputError) else MachineError
        try:
            self._roll_back()
        except NfparityError as e:
            return kind(f"{error}; and rolling back failed: {e}; nfparity migrate rollback tries again")
        return kind(f"{error}; all is as it was before")

    def _record(self) -> Record | None:
        """What is on record of this namespace, and not of one that had its inode before."""
        record = Record.read(self.place.record)
        if record is None or record.is_of(self.place):
            return record
        if self.place.lasting:
            raise InputError(f"{self.place.folder} is about another network namespace")
        return None

    def _roll_back(self) -> RolledBack:
        return roll_back(self.place, self._journal)

    def _is_over(self, record: Record) -> bool:
        try:
            found = Record.read(self.place.record)
        except MachineError:
            return False
        over = (Phase.CONFIRMED, Phase.ROLLED_BACK)
        return found is None or found.identity != record.identity or found.phase in over

    def _fire(self, record: Record, why: str) -> None:
        try:
            with self.place.locked():
                if not self._is_over(record):
                    self._say(f"{why}: rolling back")
                    self._roll_back()
                    self._say("rolled back")
        except Exception as e:  # nobody else hears of it
            self._say(f"could not roll back: {e}; nfparity migrate rollback tries again")

    def _say(self, text: str) -> None:
        with suppress(OSError), self.place.said.open("a") as file:
            file.write(f"{datetime.now(UTC).isoformat(timespec='seconds')} {text}\n")


def _insist_as_planned(plan: FamilyPlan, live: Mapping[str, SavedTable]) -> None:
    family, planned = plan.family.value, plan.tables
    if owned.is_there(plan.family):
        raise InputError(f"there is an nftables table {family} nfparity already; is it somebody's?")
    if digest_of(live) == plan.digest:
        return
    changed = f"the {family} rules have changed since the plan"
    for name in planned:
        was, is_ = planned[name], live.get(name)
        if is_ is not None and was.meaning != is_.meaning:
            raise InputError(f"{changed}: table {name}: {first_difference(was, is_)}; make another plan")
    names = ", ".join(sorted(set(planned) ^ set(live)))
    raise InputError(f"{changed}: table {names} is new, or gone; make another plan")


def _insist_replaced(plan: FamilyPlan) -> None:
    """Raise InputError when somebody has written rules meanwhile, MachineError when ours have gone."""
    check_loaded(plan)
    for name in written_again(plan):
        raise InputError(f"somebody has written rules into table {name} of {plan.family.value} meanwhile")
