"""``python -m harness.capture.package FILE``: all of capture as one file that any Python 3.8 runs."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

__all__ = ["make"]

_MAIN = "import sys\n\nfrom harness.capture.program import main\n\nsys.exit(main())\n"
_WHEN = (2020, 1, 1, 0, 0, 0)
"""The same source makes the same file."""


def make(target: Path) -> None:
    """Write the file. The house's own ``__init__`` goes with it, which holds nothing but words."""
    here = Path(__file__).resolve().parent
    texts = {"__main__.py": _MAIN, "harness/__init__.py": ""}
    for source in sorted(here.rglob("*.py")):
        texts[f"harness/capture/{source.relative_to(here)}"] = source.read_text(encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name, _WHEN), text.encode(), zipfile.ZIP_DEFLATED)
    target.chmod(0o755)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
