"""Single changes of a migration to the kernel. Each may be repeated, by any process."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from nfparity.migrate.clients import ClientsBack
from nfparity.migrate.planning.plan import FamilyPlan
from nfparity.migrate.state import owned
from nfparity.migrate.state.ipsets import restore_missing
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable, empty, restore_table, save, split
from nfparity.watch.drift import Drift, drift
from nfparity.watch.table_state import read_listing
from translate.errors import InputError, MachineError

__all__ = [
    "Restored",
    "check_loaded",
    "drifts",
    "empty_table",
    "first_difference",
    "insist_restored",
    "live_tables",
    "restore",
    "written_again",
]


class Restored(Enum):
    """The result of a rollback for one old table."""

    THERE = "there already"
    RESTORED = "restored"
    INSTEAD = "restored, in place of rules that another program had written there"
    LEFT = "left as it is, with the rules that another program has written there"

    @property
    def exact(self) -> bool:
        """Return whether the table contains exactly the saved rules."""
        return self is not Restored.LEFT


def live_tables(saved: SavedFamily | FamilyPlan) -> dict[str, SavedTable]:
    """Return the live tables of a family and variant. Raises MachineError."""
    return split(save(saved.variant, saved.family))


def written_again(plan: FamilyPlan) -> tuple[str, ...]:
    """Return the replaced tables that contain rules now. Raises MachineError."""
    live = live_tables(plan).items()
    return tuple(name for name, table in live if name not in plan.left and not table.is_empty)


def drifts(plan: FamilyPlan) -> tuple[Drift, ...] | None:
    """Return the differences of the owned table; None if it is gone. Raises MachineError."""
    listed = owned.list_table(plan.family)
    return None if listed is None else drift(plan.table_state, read_listing(listed))


def check_loaded(plan: FamilyPlan) -> None:
    """Raise MachineError if the owned table differs from the plan."""
    changed = drifts(plan)
    if changed is None:
        raise MachineError(f"the nftables table of {plan.family.value} no longer exists")
    if changed:
        raise MachineError(f"the nftables table of {plan.family.value} has been changed: {changed[0].line()}")


def empty_table(plan: FamilyPlan, table: SavedTable) -> None:
    """Empty one iptables table. Raises InputError if its rules are not those of the plan."""
    now = live_tables(plan).get(table.name)
    if now is None or now.is_empty:
        return
    if now.table_state != table.table_state:
        changed = f"table {table.name} of {plan.family.value} has been changed in the meantime"
        raise InputError(f"{changed}: {first_difference(table, now)}")
    restore_table(plan.variant, plan.family, empty(table))


def first_difference(planned: SavedTable, now: SavedTable) -> str:
    """Return a line that only one of the tables contains, or a note about the order."""
    was, is_ = planned.table_state, now.table_state
    for line in is_:
        if line not in was:
            return f"new is {line}"
    for line in was:
        if line not in is_:
            return f"gone is {line}"
    return "the same lines are in another order"


def restore(
    saved: SavedFamily,
    table: SavedTable,
    clients: ClientsBack,
    *,
    emptied: bool | None,
    keep: Callable[[str], None],
) -> Restored:
    """Restore one old table with its counters and clients. Raises MachineError.

    Rules of other programs in it are replaced if the migration ``emptied`` the table and has not restored it
    since; ``keep`` receives them first, and raises nothing. If it is unknown whether the table was emptied
    (None), a table with all of its old rules, in order, counts as not emptied or as restored.
    """
    now = live_tables(saved).get(table.name)
    is_held = now is not None and now.is_held
    if now is None or now.is_empty:
        clients.fill(table, is_held=is_held)
        _put_back(saved, table)
        return Restored.RESTORED
    if now.table_state == table.table_state:
        return Restored.THERE
    if emptied is False or now.contains(table):
        return Restored.LEFT
    keep(now.text)
    clients.fill(table, is_held=is_held)
    _put_back(saved, table)
    return Restored.INSTEAD


def _put_back(saved: SavedFamily, table: SavedTable) -> None:
    try:
        restore_table(saved.variant, saved.family, table.text, counters=True)
    except MachineError:
        if not saved.ipsets or not restore_missing(saved.ipsets):
            raise
        restore_table(saved.variant, saved.family, table.text, counters=True)


def insist_restored(saved: SavedFamily, names: set[str]) -> None:
    """Raise MachineError if these tables differ from the saved ones."""
    live, before = live_tables(saved), saved.tables
    for name in sorted(names):
        table = live.get(name)
        if table is None or table.table_state != before[name].table_state:
            raise MachineError(f"table {name} of {saved.family.value} differs from the saved one")
