"""Files and directories of a migration, and the lock of iptables.

The folder must survive a reboot, so it is under ``/var/lib``. The host's namespace is the same after a
reboot. Any other namespace is identified by its inode, and by cookie and boot id because inodes are reused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nfparity.persistent_state.locking import file_lock
from nfparity.persistent_state.namespace import current_namespace
from translate.dataclass import dataclass
from translate.errors import MachineError
from translate.ir import Family

__all__ = ["MigrationPlace", "here", "tables_locked"]

_UNITS: Final = Path("/etc/systemd/system")
_ROOT: Final = Path("/var/lib/nfparity/migrate")
_TABLES_LOCK: Final = Path("/run/xtables.lock")


@dataclass(frozen=True, slots=True)
class MigrationPlace:
    """The paths of the migration of one network namespace. ``folder`` may be missing.

    ``machine``, ``boot`` and ``namespace`` identify the namespace. ``lasting``: the folder still belongs to
    this namespace after a reboot, because it is the host's namespace, or because the user has named the
    folder.
    """

    folder: Path
    machine: str
    boot: str
    namespace: str
    lasting: bool
    units: Path | None = None
    """The directory for the unit that loads the translation at boot; None in other namespaces than the
    host's.
    """

    @property
    def record(self) -> Path:
        """The record of progress."""
        return self.folder / "record.json"

    @property
    def plan(self) -> Path:
        """The current or last plan."""
        return self.folder / "plan.json"

    @property
    def journal(self) -> Path:
        """The journal of begun and finished steps."""
        return self.folder / "journal"

    @property
    def timer_log(self) -> Path:
        """The log of the dead-man timer."""
        return self.folder / "deadman.log"

    def rules(self, family: Family) -> Path:
        """The output of iptables-save before the first change, with counters."""
        return self.folder / f"{family.value}.iptables-save"

    def translation(self, family: Family) -> Path:
        """The nft text that is loaded at boot."""
        return self.folder / f"{family.value}.nft"

    def others_rules(self, family: Family, table: str) -> Path:
        """Return the file for other programs' rules that an emptied table contained when it was restored."""
        return self.folder / f"{family.value}-{table}.found"

    @contextmanager
    def locked(self, *, needed: bool = True, patience: float = math.inf) -> Iterator[None]:
        """Lock out other commands; waits for a running command and its tools (see ``tables.restore``).

        Raises MachineError, also for an OSError in the block.
        """
        with file_lock(self.folder / "lock", inherit=True, needed=needed, patience=patience):
            try:
                yield
            except OSError as e:
                raise MachineError(f"cannot go on: {e}") from e


@contextmanager
def tables_locked(*, needed: bool = True, patience: float = math.inf) -> Iterator[None]:
    """Hold the lock of iptables-legacy (``xtables_lock``), so that other tools wait.

    The tools of nfparity use another lock in the meantime. iptables-nft has no lock. Raises MachineError.
    """
    with file_lock(_TABLES_LOCK.resolve(), inherit=False, needed=needed, patience=patience):
        yield


def here(state: Path | None = None) -> MigrationPlace:
    """Return the place of the current network namespace; ``state`` is a folder to use instead.

    Raises MachineError without root.
    """
    namespace = current_namespace()
    name = "machine" if namespace.is_hosts else str(namespace.inode)
    return MigrationPlace(
        folder=_ROOT / name if state is None else state.absolute(),
        machine=namespace.machine,
        boot=namespace.boot,
        namespace=f"{namespace.inode} {namespace.cookie}",
        lasting=namespace.is_hosts or state is not None,
        units=_UNITS if namespace.is_hosts else None,
    )
