"""Files that the guest reads repeatedly, in one archive that it unpacks into memory.

The guest's page cache does not cache files of 9p, so under emulation every start of Python needs thousands of
round trips (measured: 5 s to import the replay process, 25 s for the command line; even longer with
``cache=loose``). One big file is transferred quickly. The guest mounts the unpacked files over the original
paths; all other files are read over 9p.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from translate.errors import MachineError
from vm.kernel import Kernel

__all__ = ["EXCLUDED", "pack", "preload_paths"]

# Parts of the project that the differential test reads.
PROJECT_PARTS = ("translate", "backends", "harness", "nfparity", "tests/corpus")
# Programs that the test calls hundreds of times, and the library that compiles tc programs (a hundred
# megabytes).
PROGRAMS = ("sh", "setpriv", "ip", "tc", "nft", "ipvsadm", "xtables-legacy-multi", "xtables-nft-multi")
LIBRARIES = ("libbcc.so.0", "libnftables.so.1")
HEADER_PARTS = ("include", "arch/x86")
SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
STDLIB = Path(sysconfig.get_path("stdlib"))
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


def preload_paths(kernel: Kernel, *, project: Path) -> tuple[Path, ...]:
    """Return the files and folders to pack: Python, the project, the tools with their libraries, headers."""
    folders = [
        STDLIB,
        Path(sysconfig.get_path("purelib")),
        *(project / part for part in PROJECT_PARTS),
        *(headers / part for headers in (kernel.root / "usr" / "src").iterdir() for part in HEADER_PARTS),
    ]
    programs = [shutil.which(name, path=SYSTEM_PATH) for name in PROGRAMS]
    files = [Path(sys.executable), *(Path(program) for program in programs if program is not None)]
    files += [path for name in LIBRARIES if (path := _library(name)) is not None]
    extensions = {path.parent / "xtables" for path in files if path.name in LIBRARIES}
    needed = {path for file in files for path in _loaded_with(file)}
    every = {path.resolve() for path in (*folders, *files, *extensions, *needed) if path.exists()}
    # A path inside another path is packed with it.
    return tuple(sorted(path for path in every if not any(parent in every for parent in path.parents)))


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
