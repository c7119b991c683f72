"""BCC, loaded by path, and kernel headers for it.

``python3-bpfcc`` is a package for the distribution's Python only; PyPI's ``bcc`` is an unrelated project. The
package uses ctypes alone, so this Python can load it by path. Its directory is not added to ``sys.path``,
because it has old copies of other packages.

BCC compiles against the headers of the running kernel. A tc program uses only parts of them that do not
change between versions, so any headers can be used. If the running kernel has none, BCC_KERNEL_SOURCE names
others.
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from translate.errors import MachineError

__all__ = ["Headers", "find_headers", "find_package", "headers_package", "import_bcc", "provided_headers"]

_PLACES: Final = ("/usr/lib/python3/dist-packages", "/usr/lib/python3/site-packages")
_MODULES: Final = Path("/lib/modules")
_SOURCES: Final = Path("/usr/src")
# Kernels unpacked for the VM, headers included; see vm/kernel.py.
_UNPACKED: Final = Path(__file__).resolve().parents[3] / "build" / "kernels"
_DPKG: Final = Path("/var/lib/dpkg/info")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_NAMED: Final = "NFPARITY_KERNEL_HEADERS"
_VARIABLE: Final = "BCC_KERNEL_SOURCE"
# Debian has these folders in the build directory, not in the source directory that the variable names.
_GENERATED: Final = (
    "arch/x86/include/generated",
    "arch/x86/include/generated/uapi",
    "include",
    "include/generated/uapi",
)

Headers = tuple[Path, Path]
"""BCC's ``build`` and ``source`` directories; Debian splits headers in two."""


def find_package() -> Path | None:
    """Return the folder of BCC's Python package, or None if it is not installed."""
    for place in _PLACES:
        package = Path(place, "bcc")
        if (package / "__init__.py").is_file() and (package / "libbcc.py").is_file():
            return package
    return None


def import_bcc() -> ModuleType:
    """Load BCC. Raises MachineError if it is missing or does not load."""
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
    sys.modules["bcc"] = module  # its modules import it by this name
    try:
        with warnings.catch_warnings():
            # Python warns of escapes in BCC's strings when it compiles its modules for the first time.
            warnings.simplefilter("ignore")
            spec.loader.exec_module(module)
    except (ImportError, OSError, SyntaxError) as e:
        del sys.modules["bcc"]
        raise MachineError(f"BCC does not load: {e}") from e
    return module


def find_headers() -> Headers | None:
    """Return kernel headers: those that the environment names, those of the running kernel, or the newest.

    ``NFPARITY_KERNEL_HEADERS`` names a folder with ``build`` and ``source``, like ``/lib/modules/VERSION``.
    """
    named = os.environ.get(_NAMED)
    if named:
        return _complete(Path(named))
    running = _complete(_MODULES / os.uname().release)
    if running is not None:
        return running
    available = [h for folder in _folders(_MODULES) if (h := _complete(folder)) is not None]
    sources = [_SOURCES, *(kernel / "usr/src" for kernel in _folders(_UNPACKED))]
    available += [h for s in sources for folder in _folders(s) if (h := _debian(folder)) is not None]
    return max(available, key=lambda h: _version(h[0]), default=None)


def headers_package() -> str:
    """Return the Debian package with kernel headers for this machine.

    If apt has installed the running kernel, these are its headers. Otherwise (in a container, or with a
    self-built kernel) they are the newest ones, and their package may install a kernel image, too.
    """
    release = os.uname().release
    if (_DPKG / f"linux-image-{release}.list").is_file():
        return f"linux-headers-{release}"
    machine = platform.machine()
    return f"linux-headers-{_ARCHITECTURES.get(machine, machine)}"


@contextmanager
def provided_headers() -> Iterator[tuple[str, ...]]:
    """Provide headers for BCC inside a ``with`` block; yield the flags for its compiler.

    Raises MachineError if there are none.
    """
    headers = find_headers()
    if _VARIABLE in os.environ or (headers and headers == _complete(_MODULES / os.uname().release)):
        yield ()
        return
    if headers is None:
        raise MachineError(f"BCC needs kernel headers (Debian package {headers_package()})")
    build, source = (h.resolve() for h in headers)
    os.environ[_VARIABLE] = str(source)
    try:
        yield tuple(f"-I{build / part}" for part in _GENERATED)
    finally:
        del os.environ[_VARIABLE]


def _complete(folder: Path) -> Headers | None:
    build, source = folder / "build", folder / "source"
    if not source.is_dir():
        source = build
    return (build, source) if _usable(build, source) else None


def _debian(folder: Path) -> Headers | None:
    """Return both directories: ``linux-headers-6.1.0-1-amd64`` and ``linux-headers-6.1.0-1-common``."""
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
