"""``python -m deploy.release FOLDER``: everything that a release has, with checksums; publishes nothing.

The Debian package, the wheel, the source archive, the capture and the kubectl plugin; as root also the
container images with their bills of materials. The same commit gives the same bytes (images: with the same
packages in Debian's archive).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from deploy.krew import write_krew
from deploy.sourcetime import source_time
from nfparity.capture.package import make
from nfparity.cli.main import VERSION

__all__ = ["write_checksums", "write_release"]

_ROOT: Final = Path(__file__).parents[1]
_ADDRESS: Final = f"https://nfparity.example/releases/{VERSION}"


def write_release(folder: Path, *, address: str, images: bool) -> None:
    """Build all files into an empty folder. Raises CalledProcessError."""
    when = source_time()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(when), "PYTHON": sys.executable}
    build = [str(_ROOT / "deploy/deb/build.sh"), str(folder)]
    subprocess.run(build, env=environment, stdout=sys.stderr, check=True)
    make(folder / f"nfparity-capture-{VERSION}.pyz")
    write_krew(folder, address=address, when=when)
    _write_source(folder, environment, when)
    if images:
        command = [sys.executable, "-m", "deploy.image", str(folder)]
        subprocess.run(command, cwd=_ROOT, env=environment, stdout=sys.stderr, check=True)
    write_checksums(folder)


def _write_source(folder: Path, environment: dict[str, str], when: int) -> None:
    """Write the source archive of the commit, and the wheel that it makes."""
    name = f"nfparity-{VERSION}"
    words = ["git", "archive", f"--prefix={name}/", "--format=tar", "HEAD"]
    packed = subprocess.run(words, cwd=_ROOT, stdout=subprocess.PIPE, check=True).stdout
    (folder / f"{name}.tar.gz").write_bytes(gzip.compress(packed, mtime=when))
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run(["tar", "-x", "-C", scratch], input=packed, check=True)
        wheel = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
        wheel += [f"--wheel-dir={folder}", f"{scratch}/{name}"]
        subprocess.run(wheel, env=environment, stdout=sys.stderr, check=True)


def write_checksums(folder: Path) -> None:
    """Write SHA256SUMS, which ``sha256sum -c`` reads."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = []
    for path in files:
        with path.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def main() -> int:
    """Build the release anew and print its checksums."""
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--address", default=_ADDRESS, help="where the files will be; default: %(default)s")
    parser.add_argument("--without-images", action="store_true", help="leave out the images, which need root")
    options = parser.parse_args()
    images = not options.without_images
    if images and os.geteuid() != 0:
        print("the images need root; --without-images leaves them out", file=sys.stderr)
        return 3
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    write_release(options.folder.resolve(), address=options.address, images=images)
    print((options.folder / "SHA256SUMS").read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
