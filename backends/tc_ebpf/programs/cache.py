"""A cache of compiled programs on disk, by a hash of everything that the compiler's output depends on.

An entry is loaded into the kernel, so it is ignored unless it is complete and only this user can write its
file and directory. A directory that cannot be written is not an error; nothing is cached then.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import pwd
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from backends.tc_ebpf.programs.bcc import find_headers, find_package
from backends.tc_ebpf.programs.bpfcall import MapInfo
from backends.tc_ebpf.programs.compiled import CompiledFunction, CompiledMap, CompiledProgram
from backends.tc_ebpf.programs.compiler import FLAGS
from translate.dataclass import asdict

__all__ = ["Cache", "cache_folder", "decode", "encode", "program_key"]

_FORMAT: Final = "nfparity tc program 2"
_MOST: Final = 512
"""The number of entries kept; the oldest are deleted first. An entry takes about 100 KB."""
_DIGEST: Final = 32
_LIBRARIES: Final = ("libbcc.so.0", "*/libbcc.so.0", "*/libclang-cpp.so.*", "llvm-*/lib/libclang-cpp.so.*")
_HEADERS: Final = ("include/generated/autoconf.h", "include/generated/utsrelease.h")


def cache_folder() -> Path:
    """Return the folder of this user's compiled programs (XDG Base Directory Specification)."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(folder) if folder.startswith("/") else Path(_home(), ".cache")
    return base / "nfparity" / "tc"


def _home() -> str:
    with contextlib.suppress(KeyError):
        return os.environ.get("HOME") or pwd.getpwuid(os.geteuid()).pw_dir
    return "/nonexistent"


def program_key(source: str) -> str:
    """Return the name of a program's entry: a hash of text, compiler, kernel headers, flags and machine."""
    parts = [_FORMAT, source, platform.machine(), *FLAGS, *_compiler(), *_headers()]
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@functools.cache
def _compiler() -> Sequence[str]:
    """Identify BCC and its clang: by the Python package's version and the size and time of the libraries."""
    package = find_package()
    version = package / "version.py" if package is not None else None
    identity = [version.read_text(errors="replace")] if version is not None and version.exists() else []
    for library in sorted(path for pattern in _LIBRARIES for path in Path("/usr/lib").glob(pattern)):
        status = library.stat()
        identity.append(f"{library.resolve().name} {status.st_size} {int(status.st_mtime)}")
    return identity


@functools.cache
def _headers() -> Sequence[str]:
    headers = find_headers()
    if headers is None:
        return ["no headers"]
    build, _ = headers
    return [(build / name).read_text(errors="replace") for name in _HEADERS if (build / name).exists()]


class Cache:
    """The cache in one directory."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> CompiledProgram | None:
        """Return the program of this key, or None if there is no trustworthy entry."""
        try:
            if not _is_ours(os.stat(self._folder)):
                return None
            descriptor = os.open(self._folder / key, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with open(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                data = file.read() if _is_ours(status) and stat.S_ISREG(status.st_mode) else b""
        except OSError:
            return None
        return decode(data)

    def put(self, key: str, program: CompiledProgram) -> None:
        """Store a program, completely or not at all."""
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_ours(os.stat(self._folder)):
                return
            descriptor, name = tempfile.mkstemp(dir=self._folder, prefix=".new-")
            try:
                with open(descriptor, "wb") as file:
                    file.write(encode(program))
                os.replace(name, self._folder / key)
            except OSError:
                os.unlink(name)
                raise
            self._prune()

    def _prune(self) -> None:
        entries = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(self._folder)]
        for _, path in sorted(entries, reverse=True)[_MOST:]:
            os.unlink(path)


def _is_ours(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def encode(program: CompiledProgram) -> bytes:
    """Return a program as bytes with a checksum."""
    blobs = [function.instructions for function in program.functions] + [program.types]
    head = {
        "format": _FORMAT,
        "functions": [function.name for function in program.functions],
        "maps": [[declared.name, asdict(declared.info)] for declared in program.maps],
        "sizes": [len(blob) for blob in blobs],
    }
    body = b"".join((json.dumps(head).encode(), b"\n", *blobs))
    return hashlib.sha256(body).digest() + body


def decode(data: bytes) -> CompiledProgram | None:
    """Return the program in ``data``; None for damaged or other data."""
    digest, body = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        return None
    line, _, rest = body.partition(b"\n")
    head = json.loads(line)
    if head["format"] != _FORMAT:
        return None
    blobs = []
    for size in head["sizes"]:
        blobs.append(rest[:size])
        rest = rest[size:]
    return CompiledProgram(
        functions=tuple(
            CompiledFunction(*function) for function in zip(head["functions"], blobs, strict=False)
        ),
        maps=tuple(CompiledMap(name, MapInfo(**info)) for name, info in head["maps"]),
        types=blobs[-1],
    )
