"""Loading of a confirmed translation after a reboot.

When the unit is enabled, the tested nft text is stored; its SHA-256 is in the plan, and the plan's digest
is in the record. So a load needs neither the translator, which may have been updated, nor the ipsets, of
which the text has copies. All families are loaded in one transaction. Nothing is written to disk: the mark
of the loaded table shows that the translation is loaded (:func:`is_loaded`).
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final

from nfparity.migrate.planning.plan import FamilyPlan, MigrationPlan
from nfparity.migrate.planning.translation import digest_of_text, retranslated
from nfparity.migrate.recovery import survey
from nfparity.migrate.state import owned
from nfparity.migrate.state.owned import Mark
from nfparity.migrate.state.place import MigrationPlace, tables_locked
from nfparity.migrate.state.record import Phase, Record
from nfparity.migrate.state.saved import SavedFamily
from nfparity.migrate.state.tables import SavedTable
from nfparity.migrate.steps import check_loaded, empty_table, first_difference, live_tables, written_again
from nfparity.persistent_state.disk import read_content, write_durably
from translate.dataclass import dataclass
from translate.errors import MachineError, NfparityError
from translate.ir import Family

__all__ = ["Loaded", "is_loaded", "load_confirmed", "store_texts"]

_NOTHING: Final = "nothing is loaded"
_FILES: Final = {
    Family.IP: ("/etc/iptables/rules.v4", "/etc/sysconfig/iptables"),
    Family.IP6: ("/etc/iptables/rules.v6", "/etc/sysconfig/ip6tables"),
}
"""The files from which netfilter-persistent (Debian) and iptables.service (RHEL) load rules at boot."""


def store_texts(place: MigrationPlace, plan: MigrationPlan) -> None:
    """Store the nft text of each family for later boots. Raises InputError, MachineError."""
    for family in plan.families:
        text = retranslated(family)
        write_durably(place.translation(family.family), text.encode(errors="surrogateescape"))


def is_loaded(record: Record) -> bool:
    """Return whether every replaced family has a table with the mark of the record's rules."""
    for family, saved in record.saved.items():
        table = owned.find(family)
        if table is None or table.mark is None or table.mark.digest != saved.digest:
            return False
    return bool(record.saved)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of a load. ``new`` is False if the translation was loaded already.

    ``emptied`` are the tables, by family and name, into which another program had loaded the old rules.
    """

    new: bool
    emptied: tuple[tuple[str, str], ...] = ()


def load_confirmed(place: MigrationPlace) -> Loaded:
    """Load the confirmed translation, and empty the tables into which the old rules were loaded again.

    The caller must hold the lock of the place. Raises MachineError or InputError, with nothing loaded, if the
    migration is not confirmed, a file is not the confirmed one, the rules for a rollback are lost, or a
    replaced iptables table contains other rules than before the migration.
    """
    record = Record.read(place.record)
    if record is None:
        raise MachineError(f"{place.record} does not exist: no plan is applied; {_NOTHING}")
    if not record.is_of(place):
        raise MachineError(f"{place.folder} belongs to another network namespace or machine; {_NOTHING}")
    if record.phase is not Phase.CONFIRMED:
        raise MachineError(
            f"the plan is {record.phase.value}, not confirmed; {_NOTHING}; "
            "nfparity migrate rollback fills empty tables with the rules from before"
        )
    if is_loaded(record):
        return Loaded(new=False)
    plan = _confirmed_plan(place, record)
    saved = _restorable(place, record)
    load = ""
    for family in plan.families:
        load += owned.marked(family.family, _text(place, family), Mark.of(saved[family.family], place.folder))
    with tables_locked(needed=False):
        again = {family.family: _loaded_again(family) for family in plan.families}
        owned.load(load)
        try:
            for family in plan.families:
                check_loaded(family)
        except NfparityError:
            for family in plan.families:
                with suppress(MachineError):
                    owned.delete_table(family.family)
            raise
        # From here on the translation is complete: it stays, also if a table cannot be emptied.
        for family in plan.families:
            for table in again[family.family]:
                empty_table(family, table)
    emptied = ((family.value, table.name) for family, tables in again.items() for table in tables)
    return Loaded(new=True, emptied=tuple(emptied))


def _confirmed_plan(place: MigrationPlace, record: Record) -> MigrationPlan:
    plan = MigrationPlan.from_text(_trusted(place, "plan.json"), name=str(place.plan))
    families = {family.family: family.saved.digest for family in plan.families}
    if plan.digest != record.plan or families != {f: s.digest for f, s in record.saved.items()}:
        raise MachineError(f"{place.plan} is not the plan that was confirmed; {_NOTHING}")
    return plan


def _restorable(place: MigrationPlace, record: Record) -> dict[object, SavedFamily]:
    """Return the rules from before, without which a rollback would be impossible."""
    remains = survey(place)
    if remains.lost or len(remains.families) != len(record.saved):
        raise MachineError(
            "\n".join((f"the old rules could not be restored later; {_NOTHING}", *remains.by_hand()))
        )
    return {saved.family: saved for saved in remains.families}


def _text(place: MigrationPlace, family: FamilyPlan) -> str:
    path = place.translation(family.family)
    text = _trusted(place, path.name)
    if digest_of_text(text) != family.translation:
        raise MachineError(f"{path} is not the translation that was tested (its SHA-256 differs); {_NOTHING}")
    return text


def _trusted(place: MigrationPlace, name: str) -> str:
    path = place.folder / name
    content = read_content(path)
    if content is None:
        raise MachineError(f"{path} does not exist; {_NOTHING}")
    if content.doubt is not None:
        raise MachineError(f"{path} cannot be trusted: {content.doubt}; {_NOTHING}")
    return content.data.decode(errors="surrogateescape")


def _loaded_again(family: FamilyPlan) -> tuple[SavedTable, ...]:
    """Return the tables that contain the old rules again, in the order in which they are emptied.

    Raises MachineError if a table of nfparity is loaded, or if a replaced table contains other rules.
    """
    name = family.family.value
    if owned.is_there(family.family):
        raise MachineError(f"another nftables table {name} nfparity is loaded; {_NOTHING}")
    old, live = family.tables, live_tables(family)
    for table in written_again(family):
        was = old.get(table)
        if was is None or was.table_state != live[table].table_state:
            difference = "" if was is None else f": {first_difference(was, live[table])}"
            raise MachineError(
                f"iptables has {name} rules in table {table} that are not those from before the migration"
                f"{difference}; another program loads them at boot (kube-proxy, netfilter-persistent)"
                f"{_named_files(family)}; {_NOTHING}; "
                "stop it and run nfparity migrate load, or run nfparity migrate rollback"
            )
    return tuple(table for table in family.removed if table.name in live and not live[table.name].is_empty)


def _named_files(family: FamilyPlan) -> str:
    there = [path for path in _FILES[family.family] if os.path.exists(path)]
    return f", perhaps from {', '.join(there)}" if there else ""
