"""What can run on this machine, and what to install.

The truth about a backend is its own probe; tools and libraries are listed beside it, because they
are what can be installed. Nothing is changed.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backends.kernel.tc_ebpf.bcc import find_headers
from harness.backends import BACKENDS, backend
from translate.errors import NfparityError

__all__ = ["Check", "Kind", "diagnose", "packages_to_install"]

Kind = str
"""``backend``, ``tool``, ``python`` or ``machine``."""

_TOOLS: Final = {
    # command: Debian package, how to ask for the version, what for
    "iptables-legacy-restore": ("iptables", "--version", "backend iptables-legacy"),
    "iptables-nft-restore": ("iptables", "--version", "backend iptables-nft"),
    "nft": ("nftables", "--version", "kernel backends"),
    "ip": ("iproute2", "-V", "kernel backends"),
    "tcpdump": ("tcpdump", "--version", "a test of exported captures"),
    "curl": ("curl", "--version", "tests of traffic"),
    "dig": ("bind9-dnsutils", "-v", "tests of traffic"),
    "dnsmasq": ("dnsmasq-base", "--version", "tests of traffic"),
    "qemu-system-x86_64": ("qemu-system-x86", "--version", "make diff-test"),
    "busybox": ("busybox-static", "--help", "make diff-test"),
}
_LIBRARIES: Final = {
    "deepdiff": "nfparity diff",
    "distributed": "nfparity assess of several snapshots",
    "pyroute2": "kernel backends",
    "rich": "tables and progress on a terminal",
    "scapy": "pcap import and export",
}
_BINDINGS: Final = {
    # what only the distribution has, where its Python looks for it
    "nftables": ("python3-nftables", "backend nftables"),
    "bcc": ("python3-bpfcc", "backend tc-ebpf"),
}
_PLACES: Final = ("usr/lib/python3/dist-packages", "usr/lib/python3*/site-packages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked for. ``package`` is the Debian package to install, if one helps."""

    kind: Kind
    name: str
    ok: bool
    detail: str
    package: str | None = None


def diagnose() -> tuple[Check, ...]:
    """Look for everything that nfparity can use."""
    return (*_machine(), *_tools(), *_python(), *_backends())


def packages_to_install(checks: tuple[Check, ...]) -> tuple[str, ...]:
    """Return the Debian packages that are missing."""
    return tuple(sorted({c.package for c in checks if not c.ok and c.package is not None}))


def _machine() -> Iterator[Check]:
    yield Check(kind="machine", name="kernel", ok=True, detail=f"{platform.release()} {platform.machine()}")
    root = os.geteuid() == 0
    detail = "yes" if root else "no: kernel backends are skipped"
    yield Check(kind="machine", name="root", ok=root, detail=detail)
    tun = Path("/dev/net/tun").exists()
    yield Check(
        kind="machine", name="/dev/net/tun", ok=tun, detail="there" if tun else "missing: modprobe tun"
    )
    headers = find_headers()
    if headers is None:
        where = "none"
    elif headers[0].is_relative_to(Path("/lib/modules", platform.release())):
        where = "of the running kernel"
    else:
        where = f"{headers[0]}: another kernel's, which serve for tc programs"
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    yield Check(
        kind="machine",
        name="kernel headers",
        ok=headers is not None,
        detail=where,
        package=f"linux-headers-{architecture}",
    )
    bpffs = Path("/sys/fs/bpf")
    mounted = bpffs.is_mount()
    yield Check(
        kind="machine",
        name="bpf file system",
        ok=True,
        detail=f"at {bpffs}" if mounted else f"not at {bpffs}: nfparity tc load mounts it",
    )
    kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
    detail = "may be opened; the VM finds out whether it works" if kvm else "no: VMs are emulated, slower"
    yield Check(kind="machine", name="/dev/kvm", ok=kvm, detail=detail)


def _tools() -> Iterator[Check]:
    path = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    for name, (package, option, purpose) in _TOOLS.items():
        found = shutil.which(name, path=path)
        detail = f"missing; for {purpose}" if found is None else _version(found, option)
        yield Check(kind="tool", name=name, ok=found is not None, detail=detail, package=package)


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
    yield Check(kind="python", name="python", ok=ok, detail=platform.python_version())
    for name, purpose in _LIBRARIES.items():
        try:
            detail, found = importlib.metadata.version(name), True
        except importlib.metadata.PackageNotFoundError:
            detail, found = f"missing; for {purpose}: pip install {name}", False
        yield Check(kind="python", name=name, ok=found, detail=detail)
    for name, (package, purpose) in _BINDINGS.items():
        places = [p for place in _PLACES for p in Path("/").glob(f"{place}/{name}/__init__.py")]
        detail = str(places[0].parent) if places else f"missing; for {purpose}"
        yield Check(kind="python", name=name, ok=bool(places), detail=detail, package=package)


def _backends() -> Iterator[Check]:
    for name in BACKENDS:
        try:
            availability = backend(name).probe()
        except (ImportError, NfparityError) as e:
            yield Check(kind="backend", name=name, ok=False, detail=str(e))
            continue
        detail = "can run" if availability.ok else availability.reason
        yield Check(kind="backend", name=name, ok=availability.ok, detail=detail)
