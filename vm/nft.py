"""The nft of a Debian release, unpacked under the build folder with the libraries that it needs.

The result of loading a text depends on the version of nft. ``python -m vm.nft trixie`` prints the command.
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
from vm.unpacked import machine_version, unpacked

__all__ = ["RELEASES", "ensure_nft"]

RELEASES: Final[Mapping[str, str]] = MappingProxyType({"bookworm": "1.0.6", "trixie": "1.1.3"})
"""The releases whose nft is tested (Debian 12 and 13), and its version."""


def ensure_nft(release: str, *, build: Path, say: Callable[[str], None]) -> tuple[str, ...]:
    """Return the command that starts a release's nft, fetching it the first time.

    The machine's own nft is used if it has that version. Raises MachineError if the packages cannot be
    fetched.
    """
    if machine_version("nft") == RELEASES[release]:
        return ("nft",)
    return unpacked("nftables", release, build / "nft", say=say).command("usr/sbin/nft")


def main() -> int:
    """Print the command that starts the nft of a release."""
    parser = argparse.ArgumentParser(prog="python -m vm.nft", description=main.__doc__)
    parser.add_argument("release", choices=sorted(RELEASES))
    options = parser.parse_args()
    try:
        command = ensure_nft(
            options.release, build=Path("build"), say=lambda text: print(text, file=sys.stderr)
        )
    except MachineError as e:
        print(f"nfparity: {e}", file=sys.stderr)
        return 3
    print(shlex.join(command))
    return 0


if __name__ == "__main__":
    sys.exit(main())
