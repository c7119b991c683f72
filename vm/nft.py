"""The nft of a Debian release, unpacked under the build folder with the libraries that it needs.

The result of loading a text depends on the version of nft. The release's own dynamic loader starts nft with
the release's libraries, so that it runs on any Debian or Ubuntu. ``python -m vm.nft trixie`` prints the
command.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from translate.errors import MachineError
from vm.apt import Archive

__all__ = ["RELEASES", "ensure_nft"]

RELEASES: Final[Mapping[str, str]] = MappingProxyType({"bookworm": "1.0.6", "trixie": "1.1.3"})
"""The releases whose nft is tested (Debian 12 and 13), and its version."""

_MANIFEST: Final = "unpacked.json"
_LIBRARIES: Final = Path("usr/lib/x86_64-linux-gnu")
_LOADER: Final = "ld-linux-x86-64.so.2"


def ensure_nft(release: str, *, build: Path, say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the command that starts a release's nft, fetching it the first time.

    The machine's own nft is used if it has that version. Raises MachineError if the packages cannot be
    fetched.
    """
    if _machine_version() == RELEASES[release]:
        return ("nft",)
    root = (build / "nft" / release).resolve()
    with _locked(build / "nft"):
        if not (root / _MANIFEST).exists():
            _unpack(release, root, build, say)
    libraries = next(
        p for p in (root / _LIBRARIES, root / _LIBRARIES.relative_to("usr")) if (p / _LOADER).exists()
    )
    path = f"{root / _LIBRARIES}:{root / _LIBRARIES.relative_to('usr')}"
    return (str(libraries / _LOADER), "--library-path", path, str(root / "usr/sbin/nft"))


def _machine_version() -> str | None:
    program = shutil.which("nft", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return None
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"v(\d+\.\d+\.\d+)", printed)
    return match[1] if match else None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _unpack(release: str, root: Path, build: Path, say: Callable[[str], None]) -> None:
    archive = Archive(build / f"apt-{release}", release)
    say(f"fetching Debian's package lists for nft of {release}")
    archive.update()
    packages = _needed(archive)
    say(f"unpacking {', '.join(packages)} under {root}")
    partial = root.with_name(f"{release}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for deb in archive.download(packages, partial / "debs"):
        subprocess.run(["dpkg-deb", "-x", str(deb), str(partial)], check=True, capture_output=True)
    shutil.rmtree(partial / "debs")
    (partial / _MANIFEST).write_text(json.dumps({"packages": packages}, indent=2) + "\n")
    shutil.rmtree(root, ignore_errors=True)
    partial.rename(root)


def _needed(archive: Archive) -> tuple[str, ...]:
    """Return the package nftables and all libraries that it needs, directly or indirectly."""
    packages: dict[str, None] = {}
    waiting = ["nftables"]
    while waiting:
        name = waiting.pop()
        depends = archive.depends(name)
        if name in packages or depends is None:
            continue  # an alternative that the archive does not have
        packages[name] = None
        waiting += [other for other in depends if other.startswith("lib")]
    if "libnftables1" not in packages:
        raise MachineError("the archive has no nft with its libraries")
    return tuple(sorted(packages))


def main() -> int:
    """Print the command that starts the nft of a release."""
    parser = argparse.ArgumentParser(prog="python -m vm.nft", description=main.__doc__)
    parser.add_argument("release", choices=sorted(RELEASES))
    options = parser.parse_args()
    try:
        command = ensure_nft(
            options.release, build=Path("build"), say=lambda text: print(text, file=sys.stderr)
        )
    except MachineError as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 3
    print(shlex.join(command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
