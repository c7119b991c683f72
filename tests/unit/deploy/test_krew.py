"""The manifest for krew, and the archive that it names."""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
from pathlib import Path

import yaml

from deploy.krew import write_krew
from nfparity.cli.main import VERSION


def test_the_manifest_names_the_archive_and_its_files(tmp_path: Path) -> None:
    archive, manifest = write_krew(tmp_path, address="https://nfparity.example/1", when=1_700_000_000)
    assert sorted(tmp_path.iterdir()) == sorted([archive, manifest])
    plugin = yaml.safe_load(manifest.read_text())
    assert (plugin["kind"], plugin["metadata"]) == ("Plugin", {"name": "nfparity"})
    assert plugin["spec"]["version"] == f"v{VERSION}"
    assert len(plugin["spec"]["shortDescription"]) <= 50, "krew's limit"
    (platform,) = plugin["spec"]["platforms"]
    assert platform["uri"] == f"https://nfparity.example/1/{archive.name}"
    assert platform["sha256"] == hashlib.sha256(archive.read_bytes()).hexdigest()
    unpacked = tmp_path / "unpacked"
    with tarfile.open(archive) as members:
        assert sorted(members.getnames()) == sorted(one["from"] for one in platform["files"])
    subprocess.run(["tar", "--one-top-level=unpacked", "-xf", archive], cwd=tmp_path, check=True)
    done = subprocess.run([unpacked / platform["bin"], "--help"], capture_output=True, text=True, check=True)
    assert "usage: kubectl nfparity" in done.stdout


def test_the_same_source_makes_the_same_archive(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        archive, _ = write_krew(tmp_path / name, address="https://nfparity.example", when=1_700_000_000)
        made.append(archive.read_bytes())
    assert made[0] == made[1]
