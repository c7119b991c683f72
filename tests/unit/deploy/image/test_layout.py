"""The archive of an image: every digest and size is that of its blob, for OCI and for docker."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

from deploy.image.layer import write_layer
from deploy.image.layout import ImageSettings, write_image

SETTINGS = ImageSettings(name="n", version="1.2.3", entrypoint=("nfparity",), description="d")


def test_digests_and_sizes(tmp_path: Path) -> None:
    (tmp_path / "root/etc").mkdir(parents=True)
    (tmp_path / "root/etc/a").write_text("a")
    layer = write_layer(tmp_path / "root", tmp_path / "layer", when=0)
    digest = write_image(tmp_path / "image", layer, SETTINGS, when=1_700_000_000)
    with tarfile.open(tmp_path / "image") as archive:
        blobs = {member.name: file.read() for member in archive if (file := archive.extractfile(member))}
    for name, data in blobs.items():
        if name.startswith("blobs/sha256/"):
            assert hashlib.sha256(data).hexdigest() == name.rpartition("/")[2]
    assert json.loads(blobs["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (described,) = json.loads(blobs["index.json"])["manifests"]
    assert described["digest"] == digest
    manifest = json.loads(blobs[f"blobs/{digest.replace(':', '/')}"])
    for part in (described, manifest["config"], *manifest["layers"]):
        assert len(blobs[f"blobs/{part['digest'].replace(':', '/')}"]) == part["size"]
    config = json.loads(blobs[f"blobs/{manifest['config']['digest'].replace(':', '/')}"])
    packed = blobs[f"blobs/{manifest['layers'][0]['digest'].replace(':', '/')}"]
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(gzip.decompress(packed)).hexdigest()}"]
    assert config["config"]["Entrypoint"] == ["nfparity"]
    assert config["created"] == "2023-11-14T22:13:20Z"
    (docker,) = json.loads(blobs["manifest.json"])
    assert docker["RepoTags"] == ["n:1.2.3"]
    assert {docker["Config"], *docker["Layers"]} <= set(blobs)
    write_image(tmp_path / "again", layer, SETTINGS, when=1_700_000_000)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "image").read_bytes()
