"""A private view of Debian's package archive, for packages that are unpacked and never installed.

Debian 12's archive has both kernels that the differential test needs (6.1 in the release, 6.12 in its
security suite), and each release has its own nft. So this module reads the package lists of a given release,
independent of the machine's own release: Debian 12, 13 or Ubuntu. Everything that apt writes is under one
folder of the build tree. So no root privileges are needed, and the machine's own lists, caches and installed
packages are not changed. The machine's apt configuration (proxies, time limits) still applies.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from translate.errors import MachineError

__all__ = ["Archive", "Sources", "machine_sources", "run"]

RELEASE = "bookworm"
"""The default release."""

ARCHITECTURE = "amd64"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
TEMPLATES = tuple(Path("/usr/share/python-apt/templates", name) for name in ("Debian.info", "debian.info"))
"""Files of python-apt-common with Debian's addresses: of Debian 12 and Ubuntu, and of Debian 13."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The base addresses of Debian's main and security archives."""

    main: str
    security: str

    def render(self, release: str = RELEASE) -> str:
        """Return the ``sources.list`` text for a release."""
        options = f"arch={ARCHITECTURE} signed-by={KEYRING}"
        return (
            f"deb [{options}] {self.main} {release} main\n"
            f"deb [{options}] {self.security} {release}-security main\n"
        )


def machine_sources(indextargets: str, template: str) -> Sources | None:
    """Return the Debian mirrors that apt uses here, or else those of the template; None without either.

    ``indextargets`` is the output of ``apt-get indextargets --format '$(REPO_URI)'``: one base address per
    line. Addresses of Debian mirrors end in ``/debian`` or ``/debian-security``. All other addresses, and
    addresses that are not on the network, are ignored. deb.debian.org has both archives, even if apt's
    sources name only one. ``template`` is the text of one of :data:`TEMPLATES`, for machines without a Debian
    mirror (Ubuntu).
    """
    main = security = None
    for line in indextargets.splitlines():
        uri = line.strip().rstrip("/")
        if not re.match(r"(https?|ftp)://", uri):
            continue
        if uri.endswith("/debian"):
            main = main or uri
        elif uri.endswith("/debian-security"):
            security = security or uri
    if main is not None and urlsplit(main).hostname == "deb.debian.org":
        security = security or f"{main}-security"
    for uri in re.findall(r"^BaseURI: *(\S+?)/*$", template, re.MULTILINE):
        if "security" in uri:
            security = security or f"{uri}/debian-security"
        else:
            main = main or uri
    return None if main is None or security is None else Sources(main, security)


class Archive:
    """The archive of one release, as apt sees it from ``folder``."""

    def __init__(self, folder: Path, release: str = RELEASE) -> None:
        self._folder = folder.resolve()
        self._release = release

    def update(self) -> None:
        """Fetch the package lists; MachineError if that fails."""
        if not KEYRING.exists():
            raise MachineError(
                f"{KEYRING} is missing, so Debian's packages cannot be verified; "
                "install the package debian-archive-keyring"
            )
        for path in ("state/lists/partial", "cache/archives/partial"):
            (self._folder / path).mkdir(parents=True, exist_ok=True)
        (self._folder / "status").write_text("")
        listing = run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], what="read apt's sources")
        template = next((path.read_text() for path in TEMPLATES if path.exists()), "")
        sources = machine_sources(listing, template)
        if sources is None:
            raise MachineError(
                "no Debian mirror among apt's sources, and Debian's own list is missing; "
                "install the package python-apt-common"
            )
        (self._folder / "sources.list").write_text(sources.render(self._release))
        run(self._command("apt-get", "update", "-qq"), what="fetch Debian's package lists")

    def names(self, prefix: str) -> tuple[str, ...]:
        """Return the names of all packages that start with ``prefix``."""
        listed = run(self._command("apt-cache", "pkgnames", prefix), what="list packages")
        return tuple(sorted(listed.split()))

    def depends(self, package: str) -> tuple[str, ...] | None:
        """Return the names that ``package`` depends on, or None when the archive has no such package."""
        shown = subprocess.run(
            self._command("apt-cache", "show", "--no-all-versions", package),
            capture_output=True,
            text=True,
            check=False,
        )
        if shown.returncode != 0 or not shown.stdout.strip():
            return None
        field = re.search(r"^Depends: (.*)$", shown.stdout, re.MULTILINE)
        return tuple(re.findall(r"(?:^|[,|] *)([a-z0-9][a-z0-9+.-]+)", field[1])) if field else ()

    def download(self, packages: tuple[str, ...], into: Path) -> tuple[Path, ...]:
        """Fetch the ``.deb`` files of ``packages`` (verified against the signed lists) into a folder."""
        into.mkdir(parents=True, exist_ok=True)
        run(
            self._command("apt-get", "download", "-qq", *packages),
            what=f"download {', '.join(packages)}",
            cwd=into,
        )
        return tuple(sorted(into.glob("*.deb")))

    def _command(self, program: str, *arguments: str) -> list[str]:
        options = {
            "Dir::Etc::sourcelist": self._folder / "sources.list",
            "Dir::Etc::sourceparts": self._folder / "no-more-sources",
            "Dir::State": self._folder / "state",
            "Dir::State::status": self._folder / "status",
            "Dir::Cache": self._folder / "cache",
            "APT::Architecture": ARCHITECTURE,
            "Acquire::Languages": "none",
            # Container images configure apt without caches, so that every command would parse the lists
            # again.
            "Dir::Cache::pkgcache": "pkgcache.bin",
            "Dir::Cache::srcpkgcache": "srcpkgcache.bin",
            # As root, apt would otherwise download as user _apt, which may not write into the checkout.
            "APT::Sandbox::User": "root" if os.geteuid() == 0 else "",
        }
        settings = [f"-o{key}={value}" for key, value in options.items()]
        return [program, *settings, *arguments]


def run(command: list[str], *, what: str, cwd: Path | None = None) -> str:
    """Run a command and return its output. Raises MachineError: "cannot ``what``", with its messages."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise MachineError(
            f"cannot {what}: {command[0]} is not installed (the VM needs Debian or Ubuntu)"
        ) from error
    if done.returncode != 0:
        printed = done.stderr.strip() or done.stdout.strip()
        raise MachineError(f"cannot {what} ({command[0]} ended with status {done.returncode}):\n{printed}")
    return done.stdout
