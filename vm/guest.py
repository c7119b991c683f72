"""Start of a guest with a given kernel, which runs one command and returns its output and exit status.

virtme-ng starts the virtual machine with the host's file system over 9p, read-only, and one writable exchange
folder. It is told to use 9p and the plain PC machine. virtiofs and microvm would be faster, but do not work
with every distribution's QEMU; 9p works with all of them.

Nothing is left after a run: the guest is in a process group of its own, which is killed when the run ends for
any reason. If this process itself is killed, ``timeout`` ends the guest.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from translate.errors import MachineError
from vm.kernel import Kernel
from vm.preload import pack

__all__ = ["Guest", "command_line", "run", "script"]

GUEST_SCRIPT = Path(__file__).with_name("guest.sh")
# A guest that has not booted by then hangs; under emulation on a busy machine a boot takes 15-60 s.
BOOT_LIMIT = 900.0
POLL = 0.2
# Seconds between two messages about a guest that is booting.
TELL = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """A guest to start: its kernel, its size, and the folder that it shares with the host."""

    kernel: Kernel
    exchange: Path
    kvm: bool
    memory: str = "3G"
    cpus: int = 2
    limit: float = 3600.0
    preload: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def serial(self) -> Path:
        """The log of the guest's kernel, kept after the run."""
        return self.exchange / "serial.log"


def script(guest: Guest, command: tuple[str, ...], *, folder: Path) -> str:
    """Return the shell script that the guest runs: the environment, the folder and the command, quoted."""
    settings = {"PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", **guest.environment}
    exports = [f"export {name}={shlex.quote(value)}" for name, value in sorted(settings.items())]
    return "\n".join([*exports, f"cd {shlex.quote(str(folder))}", f"exec {shlex.join(command)}", ""])


def command_line(guest: Guest) -> list[str]:
    """Return the command that starts the guest. It ends when the guest powers off, or at the time limit."""
    virtme = _find_virtme_run()
    inside = f"sh {shlex.quote(str(GUEST_SCRIPT))} {shlex.quote(str(guest.exchange))}"
    accelerate = [] if guest.kvm else ["--disable-kvm"]
    return [
        *("timeout", "--kill-after=10", f"{guest.limit:.0f}"),
        str(virtme),
        *("--kimg", str(guest.kernel.image), "--mods", "auto"),
        *("--user", "root", "--force-9p", "--disable-microvm", *accelerate),
        *("--memory", guest.memory, "--cpus", str(guest.cpus)),
        f"--rwdir={guest.exchange}",
        *("--show-boot-console", "--kopt", "loglevel=7"),
        *("--script-sh", inside),
    ]


def run(
    guest: Guest,
    command: tuple[str, ...],
    *,
    folder: Path,
    write: Callable[[bytes], object],
    say: Callable[[str], object] = lambda message: None,
    boot_limit: float = BOOT_LIMIT,
) -> int:
    """Run a command in the guest and return its exit status; ``write`` receives its output immediately.

    ``say`` regularly receives a message while the guest is booting.

    Raises MachineError if the guest does not boot, dies or exceeds its time limit.
    """
    shutil.rmtree(guest.exchange, ignore_errors=True)
    guest.exchange.mkdir(parents=True)
    (guest.exchange / "command").write_text(script(guest, command, folder=folder))
    if guest.preload:
        pack(guest.preload, guest.exchange / "preload.tar")
        (guest.exchange / "preload").write_text("".join(f"{path}\n" for path in guest.preload))
    output = guest.exchange / "output"
    output.touch()
    began = time.monotonic()
    with (
        guest.serial.open("wb") as serial,
        output.open("rb") as following,
        # QEMU opens its standard streams again by path: this works for pipes and files only, and truncates
        # files.
        subprocess.Popen(
            command_line(guest),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as machine,
    ):
        console = machine.stdout
        assert console is not None
        os.set_blocking(console.fileno(), False)
        last_message = 0.0
        try:
            while True:
                ended = machine.poll() is not None
                _copy(console.read, serial.write)
                serial.flush()
                _copy(following.read, write)
                if ended or (guest.exchange / "status").exists():
                    break
                waited = time.monotonic() - began
                if (
                    waited > min(last_message + TELL, boot_limit)
                    and not (guest.exchange / "started").exists()
                ):
                    if waited > boot_limit:
                        limit = f"the guest did not come up in {boot_limit:.0f} s"
                        raise MachineError(_explain(guest, limit))
                    say(f"still booting after {waited:.0f} s")
                    last_message = waited
                time.sleep(POLL)
            _copy(following.read, write)
        finally:
            _kill_group(machine)
            (guest.exchange / "preload.tar").unlink(missing_ok=True)
            _copy(console.read, serial.write)
    return _status(guest, seconds=time.monotonic() - began)


def _status(guest: Guest, *, seconds: float) -> int:
    status = guest.exchange / "status"
    if status.exists():
        return int(status.read_text())
    if not (guest.exchange / "started").exists():
        raise MachineError(_explain(guest, "the guest did not come up"))
    if seconds >= guest.limit:
        raise MachineError(_explain(guest, f"the command did not end in {guest.limit:.0f} s"))
    raise MachineError(_explain(guest, f"the guest died after {seconds:.0f} s, before the command ended"))


def _explain(guest: Guest, what: str) -> str:
    lines = guest.serial.read_text(errors="replace").splitlines()
    tail = "\n".join(f"    {line}" for line in lines[-12:]) or "    (nothing)"
    how = "under KVM" if guest.kvm else "emulated"
    return f"kernel {guest.kernel.version}, {how}: {what}; its console, kept in {guest.serial}, ends:\n{tail}"


def _copy(read: Callable[[], bytes | None], write: Callable[[bytes], object]) -> None:
    data = read()
    if data:
        write(data)


def _kill_group(machine: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # all of it may have ended
        os.killpg(machine.pid, signal.SIGKILL)
    machine.wait()


def _find_virtme_run() -> Path:
    """Return the path of virtme-run, which vng calls.

    Unlike vng, it does not put arguments into a shell line.
    """
    beside = Path(sys.executable).parent / "virtme-run"
    program = beside if beside.exists() else shutil.which("virtme-run")
    if program is None:
        raise MachineError(
            "virtme-ng is not installed in this environment; run make setup, or: pip install virtme-ng"
        )
    return Path(program)
