"""A Debian kernel unpacked under the build folder, without installing it: image, modules and headers.

The *generic* image is used. The cloud image has no 9p, and so cannot mount the guest's root file system. The
modules' ``build`` and ``source`` links are changed to point to the unpacked headers: BCC in the guest follows
``/lib/modules/$(uname -r)/build``, and so finds the headers of the running kernel.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from translate.errors import MachineError
from vm.apt import ARCHITECTURE, Archive, run
from vm.unpacking import unpack

__all__ = ["Kernel", "ensure_headers", "ensure_kernel", "newest_first"]

MANIFEST = "unpacked.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """An unpacked kernel. ``root`` is the folder that stands for ``/`` of its packages."""

    series: str
    version: str
    root: Path

    @property
    def image(self) -> Path:
        """The bootable image."""
        return self.root / "boot" / f"vmlinuz-{self.version}"

    @property
    def modules(self) -> Path:
        """The guest's ``/lib/modules/$(uname -r)``; its ``build`` link leads to the headers."""
        return self.root / "lib" / "modules" / self.version


def ensure_kernel(series: str, *, build: Path, say: Callable[[str], None]) -> Kernel:
    """Return the kernel of a series such as ``6.1``; download and unpack it the first time.

    Raises MachineError when the archive has no kernel of that series, naming the series that it has.
    """
    if not re.fullmatch(r"\d+\.\d+", series):
        raise MachineError(f'"{series}" is not a kernel series; it looks like 6.1 or 6.12')
    final = (build / "kernels" / series).resolve()
    manifest = final / MANIFEST
    if manifest.exists():
        return Kernel(series=series, version=json.loads(manifest.read_text())["version"], root=final)

    archive, version, packages = _look_up(series, build=build, say=say)
    say(f"unpacking {', '.join(packages)} under {final}")
    partial = unpack(archive, packages, final)
    _link_headers(partial, final, version)
    # /sbin is not on an ordinary user's path in Debian.
    depmod = shutil.which("depmod", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if depmod is None:
        raise MachineError("depmod is not installed; install the package kmod")
    run([depmod, "-b", str(partial), version], what="list the modules of the kernel")
    (partial / MANIFEST).write_text(json.dumps({"version": version, "packages": packages}, indent=2) + "\n")
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    return Kernel(series=series, version=version, root=final)


def ensure_headers(series: str, *, build: Path, say: Callable[[str], None]) -> Path:
    """Return a folder with only the headers of a series; download and unpack them the first time.

    tc programs compile with the headers of any kernel, and headers are a tenth of the size of a kernel.
    """
    final = (build / "kernels" / f"headers-{series}").resolve()
    if not final.exists():
        archive, _, packages = _look_up(series, build=build, say=say)
        headers = tuple(name for name in packages if name.startswith("linux-headers-"))
        say(f"unpacking {', '.join(headers)} under {final}")
        unpack(archive, headers, final).rename(final)
    return final


def _look_up(series: str, *, build: Path, say: Callable[[str], None]) -> tuple[Archive, str, tuple[str, ...]]:
    archive = Archive(build / "apt")
    say(f"fetching Debian's package lists for kernel {series}")
    archive.update()
    version, packages = _choose(archive, series)
    return archive, version, packages


def newest_first(names: tuple[str, ...], series: str) -> tuple[str, ...]:
    """Return the versions of a series among names of image packages, the newest first.

    Real-time, cloud, debug and unsigned images are left out. The numbers in Debian's versions increase
    (``6.1.0-56``, ``6.12.117+deb12``), and are compared as numbers.
    """
    pattern = re.compile(rf"linux-image-({re.escape(series)}\.[0-9][0-9.+~a-z-]*-{ARCHITECTURE})")
    versions = [
        match[1]
        for name in names
        if (match := pattern.fullmatch(name)) and not re.search(r"-(rt|cloud)-", match[1])
    ]
    return tuple(sorted(versions, key=lambda v: [int(n) for n in re.findall(r"\d+", v)], reverse=True))


def _choose(archive: Archive, series: str) -> tuple[str, tuple[str, ...]]:
    names = archive.names("linux-image-")
    for version in newest_first(names, series):
        headers = archive.depends(f"linux-headers-{version}")
        # The lists may contain a name only because other packages mention it.
        if headers is None or archive.depends(f"linux-image-{version}") is None:
            continue
        common = [name for name in headers if name.startswith("linux-headers-")]
        return version, (f"linux-image-{version}", f"linux-headers-{version}", *common)
    known_series = {match[1] for name in names if (match := re.match(r"linux-image-(\d+\.\d+)\.", name))}
    known = ", ".join(sorted(known_series, key=lambda s: [int(n) for n in s.split(".")]))
    raise MachineError(f"Debian 12's archive has no kernel {series}; it has {known or 'none at all'}")


def _link_headers(partial: Path, final: Path, version: str) -> None:
    """Point ``build`` and ``source`` at the unpacked headers; in the package they point to /usr/src."""
    modules = partial / "lib" / "modules" / version
    for name in ("build", "source"):
        link = modules / name
        packaged = link.readlink()
        link.unlink()
        link.symlink_to(final / packaged.relative_to("/"))
