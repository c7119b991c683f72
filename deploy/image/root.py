"""The file system of an image: a Debian root with nfparity's package, or with what a capture needs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nfparity.capture.package import make

__all__ = ["Kind", "make_root"]

MIRROR: Final = "http://deb.debian.org/debian"
_ROOT: Final = Path(__file__).parents[2]


class Kind(StrEnum):
    """The images. Their values are the names."""

    NFPARITY = "nfparity"
    """Everything: the Debian package of nfparity."""

    CAPTURE = "nfparity-capture"
    """Only what ``nfparity capture`` runs, for pods on nodes."""


_PACKAGES: Final[Mapping[Kind, tuple[str, ...]]] = MappingProxyType(
    {
        Kind.NFPARITY: (),
        Kind.CAPTURE: ("python3-minimal", "libpython3-stdlib", "iproute2", "ipset", "iptables", "nftables"),
    }
)
_PROGRAM: Final = "nfparity-capture.pyz"

# Written by the installation, with its time or in an order of its own, and needed by nothing in an image.
_USELESS: Final = (
    *("var/lib/apt/lists", "var/cache", "var/log", "var/lib/systemd", "tmp", "var/tmp", "run"),
    *("etc/machine-id", "etc/hostname", "etc/resolv.conf", "var/lib/dpkg/lock", "var/lib/dpkg/lock-frontend"),
    *("debootstrap", "nfparity.deb"),
)
_USELESS_PATTERNS: Final = ("etc/*-", "var/lib/dpkg/*-old", "usr/share/doc/*/changelog*.gz")


def make_root(root: Path, kind: Kind, *, suite: str, deb: Path | None) -> None:
    """Make the file system in a new folder. Raises CalledProcessError; needs root and the network.

    ``deb`` is the package of nfparity, for the image that contains it.
    """
    _run("debootstrap", "--variant=minbase", suite, str(root), MIRROR)
    for name in ("resolv.conf", "hosts"):
        shutil.copy(f"/etc/{name}", root / "etc" / name)
    packages = list(_PACKAGES[kind])
    if deb is not None:
        shutil.copy(deb, root / "nfparity.deb")
        packages.append("/nfparity.deb")
    # A mount namespace of its own: nothing stays mounted, however this ends.
    install = (
        'mount -t proc proc "$0/proc"; mount --rbind /dev "$0/dev"\n'
        'chroot "$0" apt-get update -qq\n'
        'chroot "$0" apt-get install -y -qq --no-install-recommends "$@"\n'
        'chroot "$0" apt-get clean\n'
    )
    _run("unshare", "--mount", "sh", "-euc", install, str(root), *packages)
    _tidy(root)
    program = root / _PROGRAM
    if kind is Kind.CAPTURE:
        make(program)
    else:
        program.symlink_to(f"usr/share/nfparity/{_PROGRAM}")


def _tidy(root: Path) -> None:
    """Remove files that differ between builds, and files that no container uses."""
    for name in _USELESS:
        path = root / name
        if path.is_dir() and not path.is_symlink():
            for entry in path.iterdir():
                _remove(entry)
        else:
            path.unlink(missing_ok=True)
    for pattern in _USELESS_PATTERNS:
        for path in root.glob(pattern):
            path.unlink()
    for path in root.rglob("__pycache__"):
        shutil.rmtree(path)
    (root / "etc/hostname").write_text("nfparity\n")
    (root / "etc/machine-id").touch()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _run(*words: str) -> None:
    environment: dict[str, str] = {
        **{name: value for name, value in os.environ.items() if name.endswith("_proxy")},
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "DEBIAN_FRONTEND": "noninteractive",
        "LC_ALL": "C.UTF-8",
    }
    _checked(words, environment)


def _checked(words: Sequence[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        printed = (done.stderr or done.stdout)[-2000:]
        raise SystemExit(f"{words[0]} ended with status {done.returncode}:\n{printed}")
