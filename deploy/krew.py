"""The archive of the kubectl plugin, and its manifest for krew."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from deploy.archives import tar_gz
from nfparity.cli.main import VERSION
from nfparity.kubectl.package import make

__all__ = ["write_krew"]

_ROOT: Final = Path(__file__).parents[1]


def write_krew(folder: Path, *, address: str, when: int) -> tuple[Path, Path]:
    """Write the archive and the manifest; ``address`` is the folder on the web that will have the archive."""
    program = folder / "kubectl-nfparity"
    make(program)
    members = {
        "LICENSE": ((_ROOT / "LICENSE").read_bytes(), 0o644),
        program.name: (program.read_bytes(), 0o755),
    }
    program.unlink()
    archive = folder / f"kubectl-nfparity-{VERSION}.tar.gz"
    archive.write_bytes(tar_gz(members, when=when))
    text = (_ROOT / "deploy/kubectl/krew.yaml").read_text(encoding="utf-8")
    text = text.partition("\n")[2]
    values = {
        "VERSION": VERSION,
        "URI": f"{address.rstrip('/')}/{archive.name}",
        "SHA256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    manifest = folder / "nfparity.krew.yaml"
    manifest.write_text(text, encoding="utf-8")
    return archive, manifest
