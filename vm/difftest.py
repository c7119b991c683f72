"""``make diff-test``: chooses the place of the differential test, installs its requirements, and runs it."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import subprocess
import sys
from typing import Final

import vm.__main__ as guests
from translate.errors import InputError, MachineError
from vm import nft, translator
from vm.accel import Acceleration, find_acceleration
from vm.kernel import Kernel, ensure_kernel
from vm.place import Place, choose, offers_virtualisation
from vm.userland import ensure_userland

__all__ = ["main"]

KERNEL: Final = "6.1"
"""The default kernel of the guest."""
LEVELS: Final = {Place.HOST: "0 1 2", Place.KVM: "2", Place.EMULATED: "2"}
"""The default optimisation levels by place: all of them where this takes only a minute or two."""
PROJECT: Final = guests.PROJECT
_CACHE: Final = PROJECT / "build" / "vm" / "cache"
_PROCESSORS: Final = 2
"""The number of processors of a guest, for which tc programs are compiled."""


def main(arguments: list[str] | None = None) -> int:
    """Run the test and return its exit status: 0 parity, 1 differences, 2 bad options, 3 no place to run."""
    parser = argparse.ArgumentParser(
        prog="python -m vm.difftest",
        description="Run the regression corpus through every backend, at the fastest place that is valid.",
        epilog="example: python -m vm.difftest --vm emulated --cases tests/corpus/guest",
    )
    parser.add_argument("--vm", default="", help="kvm, host or emulated (default: the fastest that works)")
    parser.add_argument(
        "--kernel", default="", help=f"a Debian kernel series, always in a guest (default: {KERNEL})"
    )
    parser.add_argument(
        "--userland", default="", help="nft and iptables of bookworm or trixie (default: the machine's own)"
    )
    parser.add_argument("--cases", default="tests/corpus/cases", help="folders of cases, separated by spaces")
    parser.add_argument("--levels", default="", help="optimisation levels, separated by spaces")
    parser.add_argument("--backends", required=True, help="backends, separated by commas")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except InputError as error:
        _say(str(error))
        return 2
    except MachineError as error:
        _say(str(error))
        return 3
    except KeyboardInterrupt:
        _say("interrupted")
        return 130


def _run(options: argparse.Namespace) -> int:
    kernel = options.kernel or KERNEL
    if options.userland and options.userland not in nft.RELEASES:
        raise InputError(f"USERLAND={options.userland}: expected {', '.join(nft.RELEASES)}")
    choice = choose(
        _requested(options.vm),
        guest_needed=bool(options.kernel),
        root=os.geteuid() == 0,
        kvm=lambda: _kvm(kernel),
    )
    match choice.place:
        case Place.HOST:
            where = f"on this machine's kernel {platform.release()}"
        case Place.KVM:
            where = f"in a guest with Debian's kernel {kernel} under KVM"
        case Place.EMULATED:
            where = f"in an emulated guest with Debian's kernel {kernel}, many times slower than this machine"
    _say(f"runs {where}: {choice.reason}")
    _say("VM=kvm|host|emulated chooses another place; KERNEL=6.1|6.12 always means a guest")
    _set_up("test" if choice.place is Place.HOST else "vm")
    command = [*_command(options, choice.place), *_nfparity(options.userland), "diff"]
    if choice.place is Place.HOST:
        return subprocess.run(command, cwd=PROJECT, check=False).returncode
    emulate = ["--emulate"] if choice.place is Place.EMULATED else []
    if os.geteuid() == 0:
        command = ["env", f"XDG_CACHE_HOME={_CACHE}", *command]
        _compile_here(ensure_kernel(kernel, build=PROJECT / "build", say=_say), options, choice.place)
    return guests.main(["--kernel", kernel, "--cpus", str(_PROCESSORS), *emulate, "--", *command])


def _compile_here(kernel: Kernel, options: argparse.Namespace, place: Place) -> None:
    """Compile the guest's tc programs on this machine, which is faster; the guest compiles the rest."""
    levels = options.levels or LEVELS[place]
    words = ["--cases", *options.cases.split(), "--levels", *levels.split(), "--processors", str(_PROCESSORS)]
    variables = {"XDG_CACHE_HOME": str(_CACHE), "NFPARITY_KERNEL_HEADERS": str(kernel.modules)}
    subprocess.run(
        [sys.executable, "-m", "vm.precompile", *words],
        cwd=PROJECT,
        env={**os.environ, **variables},
        check=False,
    )


def _requested(name: str) -> Place | None:
    try:
        return Place(name) if name else None
    except ValueError:
        raise InputError(f"VM={name}: expected {', '.join(Place)}") from None


def _kvm(kernel: str) -> Acceleration:
    quick = offers_virtualisation()
    if not quick.kvm:
        return quick
    _set_up("vm")
    return find_acceleration(
        ensure_kernel(kernel, build=PROJECT / "build", say=_say).image, build=PROJECT / "build"
    )


def _command(options: argparse.Namespace, place: Place) -> list[str]:
    levels = options.levels or LEVELS[place]
    _say(f"cases {options.cases}; levels {levels}; {options.backends}")
    return ["sh", "vm/each-level.sh", options.cases, levels, options.backends]


def _nfparity(release: str) -> list[str]:
    """Return the command of nfparity with the nft and iptables of a release, or with the machine's own."""
    nfparity = ".venv/bin/nfparity"
    if not release:
        return [nfparity]
    programs = ensure_userland(release, build=PROJECT / "build", venv=PROJECT / ".venv", say=_say)
    versions = f"nft {nft.RELEASES[release]} and iptables {translator.RELEASES[release]} of {release}"
    if programs is None:
        _say(f"{versions} are the machine's own")
        return [nfparity]
    _say(f"{versions} from {programs}")
    path = os.pathsep.join((str(programs), os.environ.get("PATH", os.defpath)))
    return ["env", f"PATH={path}", str(programs / "python"), nfparity]


def _set_up(level: str) -> None:
    done = subprocess.run(["vm/setup.sh", level], cwd=PROJECT, check=False)
    if done.returncode:
        raise MachineError(f"cannot set up: {shlex.join(['vm/setup.sh', level])} failed (see above)")


def _say(message: str) -> None:
    print(f"diff-test: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
