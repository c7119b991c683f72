"""Where a migration keeps what it needs to go back, and the locks that it holds while it changes things.

The folder has to outlive a reboot, so it is under ``/var/lib``. The machine's own namespace is the same one
after a reboot. Any other is known by its inode, which another may have later; cookie and boot tell.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from translate.errors import MachineError
from translate.ir import Family

__all__ = ["Place", "here", "sync_folder", "tables_locked", "write_durably"]

_ROOT: Final = Path("/var/lib/nfparity/migrate")
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_TABLES_LOCK: Final = Path("/run/xtables.lock")
_FIRST_PID_NAMESPACE: Final = 0xEFFFFFFC
"""``PROC_PID_INIT_INO``."""
_SO_NETNS_COOKIE: Final = 71


@dataclass(frozen=True, slots=True)
class Place:
    """The migration of one network namespace. ``folder`` may be missing.

    ``boot`` and ``namespace`` name what holds the rules. ``lasting``: after a reboot, what is in the folder
    is about this namespace still, because it is the machine's own, or because somebody has named the folder.
    """

    folder: Path
    boot: str
    namespace: str
    lasting: bool

    @property
    def record(self) -> Path:
        """How far things are."""
        return self.folder / "record.json"

    @property
    def plan(self) -> Path:
        """The plan that is being applied, or was."""
        return self.folder / "plan.json"

    @property
    def journal(self) -> Path:
        """Every step that was begun, and that was done."""
        return self.folder / "journal"

    @property
    def said(self) -> Path:
        """What the dead-man timer had to say."""
        return self.folder / "deadman.log"

    def rules(self, family: Family) -> Path:
        """What iptables-save printed before the first change, with counters."""
        return self.folder / f"{family.value}.iptables-save"

    def found(self, family: Family, table: str) -> Path:
        """What somebody else had put into a table that was emptied here, at the time it was restored."""
        return self.folder / f"{family.value}-{table}.found"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other commands out; waits for one that is at work. Raises MachineError."""
        path = self.folder / "lock"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise MachineError(f"cannot lock {path}: {e.strerror}") from e
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.set_inheritable(descriptor, True)  # see tool
            yield
        except OSError as e:
            raise MachineError(f"cannot go on: {e}") from e
        finally:
            os.close(descriptor)


@contextmanager
def tables_locked() -> Iterator[None]:
    """Hold the lock of iptables-legacy (``xtables_lock``), so that others wait while rules are replaced.

    Tools that are run meanwhile are given another lock. iptables-nft has none.
    """
    try:
        descriptor = os.open(_TABLES_LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as e:
        raise MachineError(f"cannot lock {_TABLES_LOCK}: {e.strerror}") from e
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def here(state: Path | None = None) -> Place:
    """Return the place of the current network namespace; ``state`` is a folder to use instead.

    Raises MachineError without root.
    """
    if os.geteuid():
        raise MachineError("needs root")
    inode = os.stat("/proc/self/ns/net").st_ino
    machines = _is_the_machines(inode)
    folder = _ROOT / ("machine" if machines else str(inode)) if state is None else state.absolute()
    return Place(
        folder=folder,
        boot=_BOOT.read_text().strip(),
        namespace=f"{inode} {_cookie()}",
        lasting=machines or state is not None,
    )


def write_durably(path: Path, text: str) -> None:
    """Put a file on disk, whole or not at all, so that it is there after a power cut. Raises MachineError."""
    made = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with made.open("w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        made.replace(path)
        sync_folder(path.parent)
    except OSError as e:
        raise MachineError(f"cannot write {path}: {e.strerror}") from e


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_the_machines(inode: int) -> bool:
    """Whether a network namespace is that of the machine's first process, which only its own can see."""
    try:
        pids, first = os.stat("/proc/self/ns/pid").st_ino, os.stat("/proc/1/ns/net").st_ino
    except OSError:
        return False
    return pids == _FIRST_PID_NAMESPACE and first == inode


def _cookie() -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as any_socket:
        try:
            return int(struct.unpack("=Q", any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8))[0])
        except OSError:
            return 0  # before Linux 5.14: the inode must do
