"""``python -m nfparity.kubectl.package FILE``: the plugin as one file for Python 3.8 or later."""

from __future__ import annotations

import sys
from pathlib import Path

from nfparity.capture.package import write_program

__all__ = ["make"]

_MODULES = (
    "harness/files/errors.py",
    "harness/files/output.py",
    "harness/files/wholefiles.py",
    "nfparity/capture/armour.py",
    *(f"nfparity/kubectl/{name}.py" for name in ("client", "cluster", "interruption", "objects", "program")),
)


def make(target: Path) -> None:
    """Write the file."""
    write_program(target, "nfparity.kubectl.program", _MODULES)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
