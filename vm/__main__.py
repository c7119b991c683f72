"""``python -m vm --kernel 6.1 -- COMMAND``: run a command as root on a Debian kernel.

The exit status is that of the command, or 3 if no guest can be started.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import NoReturn

from translate.errors import MachineError
from vm.accel import QEMU, find_acceleration
from vm.guest import Guest, run
from vm.kernel import ensure_headers, ensure_kernel
from vm.preload import compile_modules, preload_paths

PROJECT = Path(__file__).resolve().parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, start the guest, and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m vm",
        description="Boot a Debian kernel over this machine's file system and run a command in it as root.",
        epilog="example: python -m vm --kernel 6.12 -- nft --version",
    )
    parser.add_argument(
        "--kernel", default="6.1", metavar="SERIES", help="Debian kernel series (default: 6.1)"
    )
    parser.add_argument("--memory", default="3G", help="the guest's memory (default: 3G)")
    parser.add_argument("--cpus", type=int, default=2, help="the guest's processors (default: 2)")
    parser.add_argument(
        "--limit",
        type=float,
        default=3600,
        metavar="SECONDS",
        help="end the guest after this many seconds (default: 3600)",
    )
    parser.add_argument(
        "--headers", action="store_true", help="only fetch and unpack the kernel's headers, and boot nothing"
    )
    parser.add_argument(
        "--without-tc", action="store_true", help="start faster, without what compiles tc programs"
    )
    parser.add_argument("--emulate", action="store_true", help="use emulation without trying KVM")
    parser.add_argument(
        "--build", type=Path, default=PROJECT / "build", help="the folder for kernels and logs"
    )
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the command to run in the guest"
    )
    options = parser.parse_args(arguments)
    command = tuple(options.command[1:] if options.command[:1] == ["--"] else options.command)
    if not command and not options.headers:
        parser.error("no command given")
    # As an exception, so that the guest ends with us.
    signal.signal(signal.SIGTERM, _terminate)
    try:
        return _run(options, command)
    except MachineError as error:
        print(f"vm: {error}", file=sys.stderr)
        return 3
    except KeyboardInterrupt:
        print("vm: interrupted", file=sys.stderr)
        return 130


def _run(options: argparse.Namespace, command: tuple[str, ...]) -> int:
    if options.headers:
        ensure_headers(options.kernel, build=options.build, say=_say)
        return 0
    if shutil.which(QEMU) is None:
        raise MachineError(f"{QEMU} is not installed; run make setup, or install the package qemu-system-x86")
    kernel = ensure_kernel(options.kernel, build=options.build, say=_say)
    if options.emulate:
        kvm, reason = False, "asked for"
    else:
        acceleration = find_acceleration(kernel.image, build=options.build)
        kvm, reason = acceleration.kvm, acceleration.reason
    bytecode = (options.build / "vm" / "pycache").resolve()
    compile_modules(bytecode, project=PROJECT)
    guest = Guest(
        kernel=kernel,
        exchange=(options.build / "vm" / options.kernel).resolve(),
        kvm=kvm,
        memory=options.memory,
        cpus=options.cpus,
        limit=options.limit,
        preload=(*preload_paths(kernel, project=PROJECT, tc=not options.without_tc), bytecode),
        environment={"PYTHONPYCACHEPREFIX": str(bytecode)},
    )
    how = "under KVM" if kvm else "emulated"
    _say(f"starting kernel {kernel.version}, {how}: {reason}; its console goes to {guest.serial}")
    began = time.monotonic()
    with _alone(guest):
        status = run(guest, command, folder=PROJECT, write=_pass_on, say=_say)
    seconds = time.monotonic() - began
    _say(f"kernel {kernel.version}: {command[0]} ended with status {status}, {seconds:.0f} s in all")
    return status


@contextlib.contextmanager
def _alone(guest: Guest) -> Iterator[None]:
    """Lock the exchange folder against a second run."""
    guest.exchange.parent.mkdir(parents=True, exist_ok=True)
    with guest.exchange.with_name(f"{guest.exchange.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MachineError(f"another guest uses {guest.exchange}; wait for it to end") from error
        yield


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _pass_on(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _say(message: str) -> None:
    print(f"vm: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
