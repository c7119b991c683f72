"""A Debian package of another release, unpacked under the build folder with the libraries that it needs.

The release's own dynamic loader starts its programs with the release's libraries, so that they run on any
Debian or Ubuntu.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from translate.errors import MachineError
from vm.apt import Archive
from vm.unpacking import unpack

__all__ = ["Unpacked", "machine_version", "unpacked"]

_MANIFEST: Final = "unpacked.json"
_LIBRARIES: Final = Path("usr/lib/x86_64-linux-gnu")
_LOADER: Final = "ld-linux-x86-64.so.2"


@dataclass(frozen=True, slots=True)
class Unpacked:
    """A package and its libraries under ``root``."""

    root: Path

    def command(self, program: str) -> tuple[str, ...]:
        """Return the command that starts a program of the package."""
        places = (self.root / _LIBRARIES, self.root / _LIBRARIES.relative_to("usr"))
        loader = next(place / _LOADER for place in places if (place / _LOADER).exists())
        path = ":".join(map(str, places))
        return (str(loader), "--library-path", path, str(self.root / program))

    def libraries(self, folder: str) -> Path:
        """Return a folder of plugins, such as ``xtables``."""
        return self.root / _LIBRARIES / folder


def unpacked(package: str, release: str, folder: Path, *, say: Callable[[str], None]) -> Unpacked:
    """Return a release's package in ``folder/release``, fetching it the first time.

    Raises MachineError if the packages cannot be fetched.
    """
    root = (folder / release).resolve()
    with _locked(folder):
        if not (root / _MANIFEST).exists():
            _unpack(package, release, root, folder.parent, say)
    return Unpacked(root)


def machine_version(program: str) -> str | None:
    """Return the version that a program of the machine prints of itself, None without the program."""
    path = shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    if path is None:
        return None
    printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"v(\d+\.\d+\.\d+)", printed)
    return match[1] if match else None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(package: str, release: str, root: Path, build: Path, say: Callable[[str], None]) -> None:
    archive = Archive(build / f"apt-{release}", release)
    say(f"fetching Debian's package lists for {package} of {release}")
    archive.update()
    packages = _needed(archive, package)
    say(f"unpacking {', '.join(packages)} under {root}")
    partial = unpack(archive, packages, root)
    (partial / _MANIFEST).write_text(json.dumps({"packages": packages}, indent=2) + "\n")
    shutil.rmtree(root, ignore_errors=True)
    partial.rename(root)


def _needed(archive: Archive, package: str) -> tuple[str, ...]:
    """Return the package and all libraries that it needs, directly or indirectly."""
    packages: dict[str, None] = {}
    waiting = [package]
    while waiting:
        name = waiting.pop()
        depends = archive.depends(name)
        if name in packages or depends is None:
            continue  # an alternative that the archive does not have
        packages[name] = None
        waiting += [other for other in depends if other.startswith("lib")]
    if package not in packages or "libc6" not in packages:
        raise MachineError(f"the archive has no {package} with its libraries")
    return tuple(sorted(packages))
