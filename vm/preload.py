"""Files that the guest reads repeatedly, in one archive that it unpacks into memory.

The guest's page cache does not cache files of 9p, so under emulation every start of Python needs thousands of
round trips (measured: 5 s to import the replay process, 25 s for the command line; even longer with
``cache=loose``). One big file is transferred quickly. The guest mounts the unpacked files over the original
paths; all other files are read over 9p.
"""

from __future__ import annotations

import compileall
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from translate.errors import MachineError
from vm.kernel import Kernel

__all__ = ["EXCLUDED", "compile_modules", "pack", "preload_paths"]

# The project's packages, and all of its parts that the guest reads.
PACKAGES = ("translate", "backends", "harness", "nfparity")
PROJECT_PARTS = (*PACKAGES, "tests/corpus")
# Programs that the test calls hundreds of times, and the library that compiles tc programs (a hundred
# megabytes).
PROGRAMS = ("sh", "setpriv", "ip", "tc", "nft", "ipvsadm", "xtables-legacy-multi", "xtables-nft-multi")
LIBRARIES = ("libnftables.so.1",)
COMPILER = "libbcc.so.0"
HEADER_PARTS = ("include", "arch/x86")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
STDLIB = Path(sysconfig.get_path("stdlib"))
PURELIB = Path(sysconfig.get_path("purelib"))
BINDINGS = tuple(Path("/usr/lib/python3/dist-packages", name) for name in ("nftables", "bcc"))
# Patterns of files in these paths that the guest does not need. The time to unpack depends on the number of
# files: a kernel's headers have some nine thousand empty files in include/config.
EXCLUDED = (
    *("site-packages/mypy*", "site-packages/*__mypyc.*", "site-packages/pip", "site-packages/virtme*"),
    *("site-packages/setuptools", "site-packages/pkg_resources"),
    *(
        f"{STDLIB.relative_to('/')}/{part}"
        for part in ("site-packages", "test", "idlelib", "ensurepip", "config-*")
    ),
    "*.opt-[12].pyc",
    *("linux-headers-*/include/config", "linux-headers-*/include/dt-bindings"),
)


def preload_paths(kernel: Kernel, *, project: Path, tc: bool = True) -> tuple[Path, ...]:
    """Return the files and folders to pack: Python, the project, and the tools with their libraries.

    With ``tc`` also the compiler of tc programs and the kernel's headers, which are two thirds of it all.
    """
    folders = [
        STDLIB,
        PURELIB,
        *(project / part for part in PROJECT_PARTS),
    ]
    if tc:
        sources = (kernel.root / "usr" / "src").iterdir()
        folders += [headers / part for headers in sources for part in HEADER_PARTS]
    programs = [shutil.which(name, path=SYSTEM_PATH) for name in PROGRAMS]
    files = [Path(sys.executable), *(Path(program) for program in programs if program is not None)]
    libraries = (*LIBRARIES, COMPILER) if tc else LIBRARIES
    files += [path for name in libraries if (path := _library(name)) is not None]
    extensions = {path.parent / "xtables" for path in files if path.name in LIBRARIES}
    needed = {path for file in files for path in _loaded_with(file)}
    every = {path.resolve() for path in (*folders, *files, *extensions, *needed) if path.exists()}
    # A path inside another path is packed with it.
    return tuple(sorted(path for path in every if not any(parent in every for parent in path.parents)))


def compile_modules(cache: Path, *, project: Path) -> None:
    """Compile every module that the guest imports to bytecode, in a folder for ``PYTHONPYCACHEPREFIX``.

    The guest cannot write bytecode, and compiles slowly under emulation. There may be none beside the
    modules: with ``PYTHONPYCACHEPREFIX`` or ``PYTHONDONTWRITEBYTECODE`` in its environment, pip leaves none.
    """
    before, sys.pycache_prefix = sys.pycache_prefix, str(cache)
    try:
        unused = re.compile(r"/(test|idlelib|lib2to3|mypy|mypyc|pip|setuptools)/|__mypyc")
        own = (project / part for part in (*PACKAGES, "tests"))
        for folder in (STDLIB, PURELIB, *BINDINGS, *own):
            if folder.exists():
                compileall.compile_dir(folder, quiet=2, rx=unused, maxlevels=20)
    finally:
        sys.pycache_prefix = before


def pack(paths: tuple[Path, ...], archive: Path) -> None:
    """Write the archive. Raises MachineError if tar fails."""
    command = [
        *("tar", "--create", f"--file={archive}", "--directory=/", "--ignore-failed-read"),
        *(f"--exclude={pattern}" for pattern in EXCLUDED),
        *(str(path.relative_to("/")) for path in paths),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: a file changed while it was read
        raise MachineError(f"cannot pack what the guest needs:\n{done.stderr.strip()}")


def _library(name: str) -> Path | None:
    ldconfig = shutil.which("ldconfig", path=SYSTEM_PATH)
    if ldconfig is None:
        return None
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    match = re.search(rf"^\s*{re.escape(name)} \(.*x86-64.*\) => (\S+)$", listed, re.MULTILINE)
    return Path(match[1]) if match else None


def _loaded_with(file: Path) -> tuple[Path, ...]:
    """Return the shared objects that the dynamic linker loads with a program or library."""
    listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=False).stdout
    return tuple(Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed, re.MULTILINE))
