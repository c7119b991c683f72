"""``python -m nfparity.capture.package FILE``: capture as one file that runs on any Python 3.8 or later."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

__all__ = ["make"]

_MAIN = "import sys\n\nfrom nfparity.capture.program import main\n\nsys.exit(main())\n"
_SHARED = ("harness/files/errors.py", "harness/files/output.py", "harness/files/wholefiles.py")
_WHEN = (2020, 1, 1, 0, 0, 0)
"""A constant time stamp, so that the same source gives the same file."""


def make(target: Path) -> None:
    """Write the file: the modules of capture, and the modules of other packages that they import."""
    root = Path(__file__).resolve().parents[2]
    texts = {"__main__.py": _MAIN}
    texts.update((f"{package}/__init__.py", "") for package in ("nfparity", "harness", "harness/files"))
    sources = [*(root / "nfparity/capture").rglob("*.py"), *(root / name for name in _SHARED)]
    for source in sorted(sources):
        texts[source.relative_to(root).as_posix()] = source.read_text(encoding="utf-8")
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name, _WHEN), text.encode(), zipfile.ZIP_DEFLATED)
    target.chmod(0o755)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
