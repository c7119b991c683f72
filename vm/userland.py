"""A folder of programs with which everything runs with the nft and iptables of another Debian release.

Its folder ``bin`` has nft, both kinds of iptables, and a Python that loads the release's libnftables into the
process. ``python -m vm.userland trixie`` prints this folder, to be put in front of ``PATH``.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from translate.errors import MachineError
from vm import nft, translator
from vm.unpacked import Unpacked, machine_version, unpacked

__all__ = ["ensure_userland"]

_LOADER: Final = Path("/lib64/ld-linux-x86-64.so.2")
"""The machine's own dynamic loader."""
_BINDINGS: Final = "python3-nftables"
"""The Python module of libnftables, with the library: a module may need functions of its own library."""
_OF_NETFILTER: Final = ("libnftables.so", "libnftnl.so", "libmnl.so", "libxtables.so")
_MULTI: Final = {
    f"{command}-{variant}{part}": f"usr/sbin/xtables-{variant}-multi"
    for command in ("iptables", "ip6tables")
    for variant in ("legacy", "nft")
    for part in ("", "-save", "-restore")
}
"""The commands of iptables, each with the program that it is."""


def ensure_userland(release: str, *, build: Path, venv: Path, say: Callable[[str], None]) -> Path | None:
    """Return the folder of programs of a release, made anew from its packages and the environment ``venv``.

    Returns None if the machine's own programs have the versions of the release. Raises MachineError if the
    packages cannot be fetched.
    """
    versions = (nft.RELEASES[release], translator.RELEASES[release])
    if (machine_version("nft"), machine_version("iptables-nft")) == versions:
        return None
    folder = (build / "userland" / release).resolve()
    programs = folder / "bin"
    programs.mkdir(parents=True, exist_ok=True)
    nftables = unpacked("nftables", release, build / "nft", say=say)
    _write(programs / "nft", nftables.command("usr/sbin/nft"))
    iptables = unpacked("iptables", release, build / "iptables", say=say)
    for name, multi in _MULTI.items():
        command = ("env", f"XTABLES_LIBDIR={iptables.libraries('xtables')}")
        _write(programs / name, (*command, *iptables.command(multi), name))
    bindings = unpacked(_BINDINGS, release, build / _BINDINGS, say=say)
    # Python finds its packages by the place of the program that it was started as.
    python = programs / "python"
    started = (*_loader(bindings, folder), "--argv0", str(python), str(venv.resolve() / "bin/python"))
    _write(python, ("env", f"PYTHONPATH={bindings.root / 'usr/lib/python3/dist-packages'}", *started))
    shutil.copy(venv / "pyvenv.cfg", folder / "pyvenv.cfg")
    (folder / "lib").unlink(missing_ok=True)
    (folder / "lib").symlink_to(venv.resolve() / "lib")
    return programs


def _loader(bindings: Unpacked, folder: Path) -> tuple[str, ...]:
    """Return the beginning of a command that starts a program of the machine with the release's libnftables.

    Programs run with a newer libc than the one that they were built for, but not with an older one.
    """
    loader, option, path, _ = bindings.command("")
    theirs = subprocess.run([loader, "--version"], capture_output=True, text=True, check=True).stdout
    if _libc(theirs) >= _libc(os.confstr("CS_GNU_LIBC_VERSION") or ""):
        return (loader, option, path)
    links = folder / "libraries"
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir()
    for place in path.split(":"):
        for file in Path(place).glob("*.so.*"):
            if file.name.startswith(_OF_NETFILTER):
                (links / file.name).symlink_to(file)
    return (str(_LOADER), option, str(links))


def _libc(text: str) -> tuple[int, int]:
    match = re.search(r"(?:version|glibc) (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _write(path: Path, command: tuple[str, ...]) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    path.chmod(0o755)


def main() -> int:
    """Print the folder with the programs of a release; nothing if they are the machine's own."""
    parser = argparse.ArgumentParser(prog="python -m vm.userland", description=main.__doc__)
    parser.add_argument("release", choices=sorted(nft.RELEASES))
    options = parser.parse_args()
    try:
        folder = ensure_userland(
            options.release,
            build=Path("build"),
            venv=Path(sys.prefix),
            say=lambda text: print(text, file=sys.stderr),
        )
    except MachineError as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 3
    if folder is not None:
        print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
