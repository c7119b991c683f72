"""Checks of this machine's tools, libraries and backends, and the packages to install.

A backend's own probe decides whether it can run. Programs and libraries are also listed, because they can be
installed. In a checkout, the needs of the project's own tests are listed, too. Nothing is changed.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from backends.tc_ebpf.programs.bcc import find_headers, headers_package
from harness.diff.backends import BACKENDS, backend
from translate.dataclass import dataclass
from translate.errors import NfparityError

_CHECKOUT: Final = (Path(__file__).resolve().parents[1] / "vm" / "setup.sh").exists()
_OWN_ENVIRONMENT: Final = sys.prefix != sys.base_prefix
"""True in a virtual environment, where libraries come from pip instead of the distribution."""

__all__ = ["Check", "Kind", "diagnose", "packages_to_install", "versions"]

Kind = str
"""``machine``, ``program``, ``library``, ``backend``, or ``test`` for needs of the project's tests alone."""

_PROGRAMS: Final = {
    # command: Debian package, option that prints the version, purpose
    "iptables-legacy-restore": ("iptables", "--version", "backend iptables-legacy"),
    "iptables-nft-restore": ("iptables", "--version", "backend iptables-nft"),
    "nft": ("nftables", "--version", "kernel backends"),
    "ip": ("iproute2", "-V", "kernel backends"),
    "ipvsadm": ("ipvsadm", "--version", "nodes whose kube-proxy is in ipvs mode"),
    "ipset": ("ipset", "--version", "rules with -m set on the iptables backends"),
}
_TEST_PROGRAMS: Final = {
    "tcpdump": ("tcpdump", "--version", "a test of exported captures"),
    "curl": ("curl", "--version", "tests of traffic"),
    "dig": ("bind9-dnsutils", "-v", "tests of traffic"),
    "dnsmasq": ("dnsmasq-base", "--version", "tests of traffic"),
    "qemu-system-x86_64": ("qemu-system-x86", "--version", "make diff-test in a guest"),
    "busybox": ("busybox-static", "--help", "make diff-test in a guest"),
}
_LIBRARIES: Final = {
    "deepdiff": "nfparity diff",
    "rich": "tables and progress on a terminal",
    "scapy": "pcap import and export",
}
_OPTIONAL: Final = {"distributed": "nfparity assess of several snapshots"}
_BINDINGS: Final = {
    # bindings that only the distribution provides, in the folders of its Python
    "nftables": ("python3-nftables", "backend nftables"),
    "bcc": ("python3-bpfcc", "backend tc-ebpf"),
}
_PLACES: Final = ("usr/lib/python3/dist-packages", "usr/lib/python3*/site-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check. ``package`` is the Debian package that provides what is missing, if any."""

    kind: Kind
    name: str
    ok: bool
    detail: str
    package: str | None = None


def diagnose() -> tuple[Check, ...]:
    """Return the checks of everything that nfparity can use."""
    return (
        *_machine(),
        *_programs("program", _PROGRAMS),
        *_python(),
        *_backends(),
        *(_programs("test", _TEST_PROGRAMS) if _CHECKOUT else ()),
    )


def versions() -> tuple[tuple[str, str], ...]:
    """Return the names and versions to name in a bug report; missing tools are left out."""
    loaders = {name: _PROGRAMS[name] for name in ("iptables-legacy-restore", "iptables-nft-restore", "nft")}
    programs = ((check.name, check.detail) for check in _programs("program", loaders) if check.ok)
    bindings = (
        ("bcc", match[1])
        for place in _PLACES
        for file in Path("/").glob(f"{place}/bcc/version.py")
        if (match := re.search(r"__version__ = '([^']+)'", file.read_text())) is not None
    )
    return (
        ("kernel", platform.release()),
        ("python", platform.python_version()),
        *programs,
        *bindings,
    )


def packages_to_install(checks: tuple[Check, ...], *, tests: bool = False) -> tuple[str, ...]:
    """Return the Debian packages that nfparity's commands lack, or with ``tests`` the project's own tests."""
    wanted = (c for c in checks if not c.ok and (c.kind == "test") == tests)
    return tuple(sorted({c.package for c in wanted if c.package is not None}))


def _machine() -> Iterator[Check]:
    yield Check(kind="machine", name="kernel", ok=True, detail=f"{platform.release()} {platform.machine()}")
    root = os.geteuid() == 0
    detail = "yes" if root else "no: kernel backends need a user namespace, and tc-ebpf cannot run"
    yield Check(kind="machine", name="root", ok=root, detail=detail)
    tun = Path("/dev/net/tun").exists()
    yield Check(
        kind="machine", name="/dev/net/tun", ok=tun, detail="there" if tun else "missing: modprobe tun"
    )
    headers = find_headers()
    if headers is None:
        where = "none; backend tc-ebpf needs headers, of any kernel version"
        if _CHECKOUT:
            where += ": make setup unpacks some under build/"
    elif headers[0].is_relative_to(Path("/lib/modules", platform.release())):
        where = "of the running kernel"
    else:
        where = f"{headers[0]}: of another kernel, which is enough for tc programs"
    yield Check(
        kind="machine",
        name="kernel headers",
        ok=headers is not None,
        detail=where,
        # In a checkout, make setup unpacks headers without the compiler that this package depends on.
        package=None if _CHECKOUT else headers_package(),
    )
    bpffs = Path("/sys/fs/bpf")
    mounted = bpffs.is_mount()
    yield Check(
        kind="machine",
        name="bpf file system",
        ok=True,
        detail=f"at {bpffs}" if mounted else f"not mounted at {bpffs}; nfparity tc load mounts it",
    )


def _programs(kind: Kind, programs: Mapping[str, tuple[str, str, str]]) -> Iterator[Check]:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    for name, (package, option, purpose) in programs.items():
        program = shutil.which(name, path=path)
        detail = f"missing; for {purpose}" if program is None else _version(program, option)
        yield Check(kind=kind, name=name, ok=program is not None, detail=detail, package=package)


def _version(path: str, option: str) -> str:
    try:
        done = subprocess.run(
            [path, option],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=10,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"{path} does not run: {e}"
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else path


def _python() -> Iterator[Check]:
    ok = sys.version_info >= (3, 11)
    yield Check(kind="library", name="python", ok=ok, detail=platform.python_version())
    for name, purpose in sorted((_LIBRARIES | _OPTIONAL).items()):
        package = None if _OWN_ENVIRONMENT else f"python3-{name}"
        try:
            detail, installed = importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            command = f"pip install {name}" if package is None else f"sudo apt install {package}"
            detail, installed = f"missing; for {purpose}: {command}", False
        wanted = package if name in _LIBRARIES else None
        yield Check(kind="library", name=name, ok=installed, detail=detail, package=wanted)
    for name, (package, purpose) in _BINDINGS.items():
        places = [p for place in _PLACES for p in Path("/").glob(f"{place}/{name}/__init__.py")]
        detail = str(places[0].parent) if places else f"missing; for {purpose}"
        yield Check(kind="library", name=name, ok=bool(places), detail=detail, package=package)


def _backends() -> Iterator[Check]:
    for name in BACKENDS:
        try:
            availability = backend(name).probe()
        except (ImportError, NfparityError) as e:
            yield Check(kind="backend", name=name, ok=False, detail=str(e))
            continue
        detail = "can run" if availability.ok else availability.reason
        yield Check(kind="backend", name=name, ok=availability.ok, detail=detail)
