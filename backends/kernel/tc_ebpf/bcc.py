"""BCC, loaded by path, and kernel headers for it.

``python3-bpfcc`` is a package of the distribution and is seen by the distribution's Python alone;
PyPI's ``bcc`` is an unrelated project. It is pure ctypes, so this Python can run it from where
it lies; the folder is not put on ``sys.path``, where it would bring old copies of everything else.

BCC compiles against the headers of the running kernel. A tc program needs nothing of them that
changes, so any headers will do. Where the running kernel has none, a private mount namespace gets
a ``/lib/modules`` that has others under its name; it ends with this process.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from translate.errors import MachineError

__all__ = ["Headers", "find_headers", "find_package", "import_bcc", "provide_headers"]

_PLACES: Final = ("/usr/lib/python3/dist-packages", "/usr/lib/python3/site-packages")
_MODULES: Final = Path("/lib/modules")
_SOURCES: Final = Path("/usr/src")
# Kernels unpacked for the VM, headers included; see vm/kernel.py.
_UNPACKED: Final = Path(__file__).resolve().parents[3] / "build" / "kernels"
_CLONE_NEWNS: Final = 0x00020000
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 1 << 18

Headers = tuple[Path, Path]
"""The folders that BCC calls ``build`` and ``source``; Debian splits headers in two."""


def find_package() -> Path | None:
    """Return the folder of BCC's Python package, or None if it is not installed."""
    for place in _PLACES:
        found = Path(place, "bcc")
        if (found / "__init__.py").is_file() and (found / "libbcc.py").is_file():
            return found
    return None


def import_bcc() -> ModuleType:
    """Load BCC. Raises MachineError when it is not there or does not load."""
    loaded = sys.modules.get("bcc")
    if loaded is not None:
        return loaded
    package = find_package()
    if package is None:
        raise MachineError("BCC is not installed (Debian package python3-bpfcc)")
    spec = importlib.util.spec_from_file_location(
        "bcc", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bcc"] = module  # its own modules import it by this name
    try:
        spec.loader.exec_module(module)
    except (ImportError, OSError) as e:
        del sys.modules["bcc"]
        raise MachineError(f"BCC does not load: {e}") from e
    return module


def find_headers() -> Headers | None:
    """Return kernel headers: the running kernel's if it has any, otherwise the newest there are."""
    running = _complete(_MODULES / os.uname().release)
    if running is not None:
        return running
    found = [h for folder in _folders(_MODULES) if (h := _complete(folder)) is not None]
    sources = [_SOURCES, *(kernel / "usr/src" for kernel in _folders(_UNPACKED))]
    found += [h for s in sources for folder in _folders(s) if (h := _debian(folder)) is not None]
    return max(found, key=lambda h: _version(h[0]), default=None)


def provide_headers() -> None:
    """See to it that BCC, in this process, finds headers. Raises MachineError when there are none.

    Unshares the mount namespace when the running kernel has no headers of its own.
    """
    running = _MODULES / os.uname().release
    if _complete(running) is not None or os.environ.get("BCC_KERNEL_SOURCE"):
        return
    headers = find_headers()
    if headers is None:
        raise MachineError("no kernel headers (Debian package linux-headers-amd64); BCC needs some")
    build, source = (h.resolve() for h in headers)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS):
        raise MachineError(f"cannot make a mount namespace: {os.strerror(ctypes.get_errno())}")
    mounts = (
        (b"none", b"/", None, _MS_REC | _MS_PRIVATE, None),
        (b"tmpfs", os.fsencode(_MODULES), b"tmpfs", 0, b"size=64k,mode=755"),
    )
    for mount in mounts:
        if libc.mount(*mount[:3], ctypes.c_ulong(mount[3]), mount[4]):
            raise MachineError(f"cannot mount on {_MODULES}: {os.strerror(ctypes.get_errno())}")
    running.mkdir()
    (running / "build").symlink_to(build)
    (running / "source").symlink_to(source)


def _complete(folder: Path) -> Headers | None:
    build, source = folder / "build", folder / "source"
    if not source.is_dir():
        source = build
    return (build, source) if _usable(build, source) else None


def _debian(folder: Path) -> Headers | None:
    """``linux-headers-6.1.0-1-amd64`` goes with ``linux-headers-6.1.0-1-common``."""
    if not folder.name.startswith("linux-headers-"):
        return None
    common = folder.with_name(re.sub(r"-[^-]+$", "-common", folder.name))
    source = common if common.is_dir() else folder
    return (folder, source) if _usable(folder, source) else None


def _usable(build: Path, source: Path) -> bool:
    generated = build / "include/generated/autoconf.h"
    return generated.is_file() and (source / "include/linux/kconfig.h").is_file()


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(p for p in parent.iterdir() if p.is_dir())
    except OSError:
        return []


def _version(folder: Path) -> tuple[int, ...]:
    numbers = re.findall(r"\d+", folder.resolve().name)
    return tuple(int(n) for n in numbers[:4])
