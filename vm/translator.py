"""``iptables-restore-translate`` of a Debian release, unpacked under the build folder.

``python -m vm.translator trixie`` prints the command.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from translate.errors import MachineError
from translate.ir import Family
from vm.unpacked import machine_version, unpacked

__all__ = ["RELEASES", "ensure_translator"]

RELEASES: Final[Mapping[str, str]] = MappingProxyType({"bookworm": "1.8.9", "trixie": "1.8.11"})
"""The releases whose translator is compared (Debian 12 and 13), and its version."""

_NAMES: Final = {Family.IP: "iptables-restore-translate", Family.IP6: "ip6tables-restore-translate"}


def ensure_translator(
    release: str, family: Family, *, build: Path, say: Callable[[str], None]
) -> tuple[str, ...]:
    """Return the command that starts a release's translator, fetching it the first time.

    The machine's own translator is used if it has that version. Raises MachineError if the packages cannot be
    fetched.
    """
    if machine_version("iptables-nft") == RELEASES[release]:
        return (_NAMES[family],)
    package = unpacked("iptables", release, build / "iptables", say=say)
    plugins = f"XTABLES_LIBDIR={package.libraries('xtables')}"
    return ("env", plugins, *package.command("usr/sbin/xtables-nft-multi"), _NAMES[family])


def main() -> int:
    """Print the command that starts the translator of a release, for IPv4."""
    parser = argparse.ArgumentParser(prog="python -m vm.translator", description=main.__doc__)
    parser.add_argument("release", choices=sorted(RELEASES))
    options = parser.parse_args()
    try:
        command = ensure_translator(
            options.release,
            Family.IP,
            build=Path("build"),
            say=lambda text: print(text, file=sys.stderr),
        )
    except MachineError as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 3
    print(shlex.join(command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
