"""``python -m deploy.image FOLDER [--suite SUITE]``: both images with their bills of materials."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from deploy.image.layer import write_layer
from deploy.image.layout import ImageSettings, write_image
from deploy.image.root import Kind, make_root
from deploy.image.sbom import spdx
from deploy.sourcetime import source_time
from nfparity.cli.main import VERSION

__all__ = ["build"]

_ROOT: Final = Path(__file__).parents[2]
_DEBIAN: Final = {"bookworm": "debian-12", "trixie": "debian-13"}


def build(folder: Path, kind: Kind, root: Path, *, suite: str, when: int) -> str:
    """Make the root and write the image and its bill of materials; return the digest of the image."""
    deb = _package(folder) if kind is Kind.NFPARITY else None
    make_root(root, kind, suite=suite, deb=deb)
    program = ("nfparity",) if kind is Kind.NFPARITY else ("python3", "/nfparity-capture.pyz")
    settings = ImageSettings(
        name=kind.value,
        version=VERSION,
        entrypoint=program,
        description="Compares a node's iptables rules with their replacements, with packets",
    )
    layer = write_layer(root, folder / f".{kind}.layer", when=when)
    try:
        digest = write_image(folder / f"{kind}-{VERSION}.oci.tar", layer, settings, when=when)
    finally:
        layer.path.unlink()
    status = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    bill = spdx(
        status, name=kind.value, version=VERSION, distribution=_DEBIAN[suite], digest=digest, when=when
    )
    (folder / f"{kind}-{VERSION}.spdx.json").write_text(bill, encoding="utf-8")
    return digest


def _package(folder: Path) -> Path:
    """Return the Debian package, built into the folder."""
    done = subprocess.run(
        [_ROOT / "deploy/deb/build.sh", folder],
        env=os.environ | {"PYTHON": sys.executable}, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return Path(done.stdout.strip())


def main() -> int:
    """Build the images and print the digest of each."""
    parser = argparse.ArgumentParser(prog="python -m deploy.image", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--suite", choices=sorted(_DEBIAN), default="trixie", help="default: trixie (Debian 13)"
    )
    parser.add_argument("--only", type=Kind, choices=list(Kind), help="only this image")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("make image needs root: debootstrap and chroot do", file=sys.stderr)
        return 3
    options.folder.mkdir(parents=True, exist_ok=True)
    for kind in Kind if options.only is None else (options.only,):
        with tempfile.TemporaryDirectory(dir=options.folder, prefix=f".{kind}.") as scratch:
            root = Path(scratch) / "root"
            digest = build(options.folder.resolve(), kind, root, suite=options.suite, when=source_time())
        print(f"{options.folder / f'{kind}-{VERSION}.oci.tar'} {digest}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
