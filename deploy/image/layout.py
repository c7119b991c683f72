"""An image in one archive: an OCI image layout, which ``docker load`` reads as well."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from deploy.image.layer import Layer

__all__ = ["ImageSettings", "write_image"]

_OCI: Final = "application/vnd.oci.image"
ARCHITECTURE: Final = "amd64"


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """The program that a container of the image runs, and its description."""

    name: str
    version: str
    entrypoint: tuple[str, ...]
    description: str


def write_image(target: Path, layer: Layer, settings: ImageSettings, *, when: int) -> str:
    """Write the archive; return the digest of the image, by which registries and manifests name it."""
    size = layer.path.stat().st_size
    config = _json(_config(layer, settings, when))
    config_digest = hashlib.sha256(config).hexdigest()
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_OCI}.manifest.v1+json",
            "config": _descriptor("config.v1+json", config_digest, len(config)),
            "layers": [_descriptor("layer.v1.tar+gzip", layer.digest, size)],
            "annotations": _annotations(settings),
        }
    )
    digest = hashlib.sha256(manifest).hexdigest()
    reference = f"{settings.name}:{settings.version}"
    described = _descriptor("manifest.v1+json", digest, len(manifest))
    described["annotations"] = {"org.opencontainers.image.ref.name": reference}
    index = {"schemaVersion": 2, "mediaType": f"{_OCI}.index.v1+json", "manifests": [described]}
    # manifest.json is docker's own list of the contents.
    docker = [
        {
            "Config": f"blobs/sha256/{config_digest}",
            "RepoTags": [reference],
            "Layers": [f"blobs/sha256/{layer.digest}"],
        }
    ]
    small = {
        f"blobs/sha256/{config_digest}": config,
        f"blobs/sha256/{digest}": manifest,
        "index.json": _json(index),
        "manifest.json": _json(docker),
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
    }
    with tarfile.open(target, "w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in sorted(small.items()):
            archive.addfile(_member(name, len(data), when), io.BytesIO(data))
        with layer.path.open("rb") as file:
            archive.addfile(_member(f"blobs/sha256/{layer.digest}", size, when), file)
    return f"sha256:{digest}"


def _config(layer: Layer, settings: ImageSettings, when: int) -> dict[str, Any]:
    created = datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "created": created,
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"],
            "Entrypoint": list(settings.entrypoint),
            "WorkingDir": "/",
            "Labels": _annotations(settings),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.content_digest}"]},
        "history": [{"created": created, "created_by": "make image"}],
    }


def _annotations(settings: ImageSettings) -> dict[str, str]:
    values = {
        "title": settings.name,
        "version": settings.version,
        "description": settings.description,
        "licenses": "Apache-2.0",
    }
    return {f"org.opencontainers.image.{key}": value for key, value in values.items()}


def _descriptor(kind: str, digest: str, size: int) -> dict[str, Any]:
    return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{digest}", "size": size}


def _json(value: Mapping[str, Any] | list[Any]) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _member(name: str, size: int, when: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o644, when
    return member
