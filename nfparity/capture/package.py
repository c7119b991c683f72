"""``python -m nfparity.capture.package FILE``: capture as one file that runs on any Python 3.8 or later."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["make", "write_program"]

_SHARED = ("harness/files/errors.py", "harness/files/output.py", "harness/files/wholefiles.py")
_WHEN = (2020, 1, 1, 0, 0, 0)
"""A constant time stamp, so that the same source gives the same file."""


def make(target: Path) -> None:
    """Write the file: the modules of capture, and the modules of other packages that they import."""
    root = Path(__file__).resolve().parents[2]
    own = [source.relative_to(root).as_posix() for source in (root / "nfparity/capture").rglob("*.py")]
    write_program(target, "nfparity.capture.program", (*own, *_SHARED))


def write_program(target: Path, main: str, sources: Iterable[str]) -> None:
    """Write a program of some modules as one file that Python runs: ``main`` is the module with ``main``."""
    root = Path(__file__).resolve().parents[2]
    texts = {"__main__.py": f"import sys\n\nfrom {main} import main\n\nsys.exit(main())\n"}
    names = sorted(sources)
    folders = {parent.as_posix() for name in names for parent in Path(name).parents if parent.name}
    texts.update((f"{folder}/__init__.py", "") for folder in sorted(folders))
    texts.update((name, (root / name).read_text(encoding="utf-8")) for name in names)
    target.parent.mkdir(parents=True, exist_ok=True)
    with open(target, "wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(zipfile.ZipInfo(name, _WHEN), text.encode(), zipfile.ZIP_DEFLATED)
    target.chmod(0o755)


if __name__ == "__main__":
    make(Path(sys.argv[1]))
